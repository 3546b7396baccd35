package confine

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// mount is a mount of the machine: a part of a file system at a path.
type mount struct {
	device string // major:minor
	root   string // the path inside the file system
	point  string
}

// mountsHere lists the mounts of this process's tree. If they cannot be listed, there are no aliases.
func mountsHere() []mount {
	infos, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil
	}
	list := make([]mount, 0, len(infos))
	for _, m := range infos {
		list = append(list, mount{device: itoa(m.Major) + ":" + itoa(m.Minor), root: filepath.Clean(m.Root), point: filepath.Clean(m.Mountpoint)})
	}
	return list
}

// aliases returns the other paths of what is at a path, or of a part of it, if its file system is mounted more than once.
func (t *tree) aliases(path string) []string {
	own, ok := t.mountOf(path)
	if !ok {
		return nil
	}
	rel, _ := relative(path, own.point)
	at := join(own.root, rel)
	var list []string
	for _, m := range t.mounts {
		if m.device != own.device || m.point == own.point {
			continue
		}
		if rel, ok := relative(at, m.root); ok {
			if other := join(m.point, rel); other != path {
				list = append(list, other)
			}
		} else if within(m.root, at) && !t.placed(m.point) && !within(t.Dir, m.point) {
			list = append(list, m.point)
		}
	}
	return list
}

// mountOf returns the mount of a path. If two have the same mount point, the later one counts.
func (t *tree) mountOf(path string) (found mount, ok bool) {
	for _, m := range t.mounts {
		if within(path, m.point) && (!ok || len(m.point) >= len(found.point)) {
			found, ok = m, true
		}
	}
	return found, ok
}

// socketsHere lists the Unix sockets of this network namespace that have a path.
func socketsHere() []string {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	var list []string
	const fields = 8 // the path is the last
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		parts := strings.SplitN(strings.Join(strings.Fields(lines.Text()), " "), " ", fields)
		if len(parts) == fields && strings.HasPrefix(parts[fields-1], "/") {
			list = append(list, parts[fields-1])
		}
	}
	return list
}
