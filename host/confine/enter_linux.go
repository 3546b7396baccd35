package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Capabilities returns those that Enter needs in its user namespace.
func Capabilities() []uintptr {
	return []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}
}

// Namespaces reports whether the plan creates namespaces, which may need a user namespace first.
func (p *Plan) Namespaces() bool { return p.flags() != 0 }

// network reports whether the program has a separate network.
func (p *Plan) network() bool { return p.Network && p.Net != NetOpen }

func (p *Plan) flags() (flags int) {
	if p.Mounts {
		flags |= unix.CLONE_NEWNS
	}
	if p.IPC {
		flags |= unix.CLONE_NEWIPC
	}
	if p.network() {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// Enter creates the namespaces of the calling thread and sets them up. It needs Capabilities, or user 0.
func (p *Plan) Enter() error {
	if flags := p.flags(); flags != 0 {
		if err := unshare(flags); err != nil {
			return fmt.Errorf("make namespaces: %w", err)
		}
	}
	if p.network() { // before /proc is read-only
		if err := p.enterNetwork(); err != nil {
			return err
		}
	}
	if p.Mounts {
		if err := p.build(); err != nil {
			return err
		}
	}
	if p.holds() {
		if err := p.openNamespaces(); err != nil {
			return fmt.Errorf("open own namespaces: %w", err)
		}
	}
	if !p.connects() {
		return nil
	}
	diag, err := openDiag()
	if err != nil {
		return fmt.Errorf("list Unix sockets: %w", err)
	}
	p.hand = append(p.hand, diag)
	return nil
}

// notifies reports whether the daemon carries out calls of the program.
func (p *Plan) notifies() bool { return p.Filter && p.Notify }

// connects reports whether those of connect are among them.
func (p *Plan) connects() bool { return p.notifies() && p.ABI < abiUnix }

// Restrict applies Landlock and the filter of system calls to the calling thread. PR_SET_NO_NEW_PRIVS must be set.
func (p *Plan) Restrict() error {
	if p.ABI > 0 {
		if err := p.landlock(); err != nil {
			return err
		}
	}
	if !p.Filter {
		return nil
	}
	rules := Rules{IPC: !p.IPC, Trace: p.Strict}
	if p.Net != NetOpen && !p.Network {
		rules.Families = UnixSocket
	}
	rules.Notify, rules.Connect, rules.Execs = p.notifies(), p.connects(), p.notifies() && p.Execs
	listener, err := rules.apply()
	if err == nil && rules.Notify {
		p.hand = append(p.hand, listener)
	}
	return err
}

// build builds the file tree in a separate mount namespace: everything read-only and without devices, then the layers.
func (p *Plan) build() error {
	defer unix.Umask(unix.Umask(0)) // the umask belongs to this thread in such a namespace
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	b := builder{plan: p, trees: map[string]int{}, veils: map[string]int{}, empty: map[string]int{}}
	if err := b.open(); err != nil {
		return err
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV}); err != nil {
		return fmt.Errorf("make file systems read-only: %w", err)
	}
	if p.PIDs {
		if err := addProcesses(); err != nil {
			return fmt.Errorf("mount %s: %w", processDir, err)
		}
	}
	if err := b.stage(); err != nil {
		return fmt.Errorf("mount staging: %w", err)
	}
	for i, l := range p.layers {
		if err := b.add(i, l); err != nil {
			return fmt.Errorf("%s: %w", l.path, err)
		}
	}
	for path, fd := range b.empty {
		if err := readOnly(fd); err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	if err := unix.Unmount(stagingPoint, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount staging: %w", err)
	}
	if err := unix.Chdir(p.Dir); err != nil {
		return fmt.Errorf("enter working directory: %w", err)
	}
	return nil
}

// unshare moves the calling thread to namespaces of its own. It returns an error if the thread still has the mounts that it had,
// since its mounts would then affect the machine.
func unshare(flags int) error {
	const mounts = "/proc/thread-self/ns/mnt"
	before, err := os.Readlink(mounts)
	if err == nil {
		err = unix.Unshare(flags)
	}
	if err != nil || flags&unix.CLONE_NEWNS == 0 {
		return err
	}
	if after, err := os.Readlink(mounts); err != nil || after == before {
		return errors.Join(errors.New("the mounts are still those of the machine"), err)
	}
	return nil
}

// builder builds layers. Those of its descriptors that it does not close stay open until execve closes them.
type builder struct {
	plan  *Plan
	trees map[string]int // the source of each place, by target
	veils map[string]int // the shared whiteouts, by target
	empty map[string]int // file systems to make read-only at the end
}

// open opens the places while the machine's tree is still complete and writable.
func (b *builder) open() error {
	for _, l := range b.plan.layers {
		if l.source == "" {
			continue
		}
		if l.kind == veil {
			if fd, err := l.whole(); err == nil { // otherwise veil makes its own
				b.veils[l.path] = fd
			}
			continue
		}
		fd, err := clone(l.source)
		if l.optional && err != nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", l.source, err)
		}
		set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
		if !l.write && l.kind == bindMount {
			set.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
		if !within(l.path, "/dev") {
			set.Attr_set |= unix.MOUNT_ATTR_NODEV
		}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &set); err != nil {
			return fmt.Errorf("bind %s: %w", l.source, err)
		}
		b.trees[l.path] = fd
	}
	return nil
}

// stagingPoint is a directory that every machine has, also in a /proc of the program's own, and below which there is no layer.
const stagingPoint = "/proc/fs"

// stage mounts a tmpfs for files and whiteouts, which is needed until the tree is built.
func (*builder) stage() error {
	fd, err := tmpfs("1m", "0700", "100k")
	if err != nil {
		return err
	}
	return attach(fd, stagingPoint)
}

// add builds one layer.
func (b *builder) add(n int, l layer) error {
	switch l.kind {
	case scratch, empty:
		if l.source != "" {
			return attach(b.trees[l.path], l.path)
		}
		size, mode := "512m", "1777"
		if l.kind == empty {
			size, mode = "1m", "0755"
		}
		fd, err := tmpfs(size, mode, "100k")
		if err != nil {
			return err
		}
		if l.kind == empty {
			b.empty[l.path] = fd
		}
		if err := target(l.path, true); err != nil {
			return err
		}
		return attach(fd, l.path)
	case sized:
		fd, err := tmpfs(strconv.FormatInt(l.size, 10), "0700", shareFiles)
		if err != nil {
			return err
		}
		b.plan.hand = append(b.plan.hand, fd)
		if err := target(l.path, true); err != nil {
			return err
		}
		return attach(fd, l.path)
	case bindMount:
		fd, ok := b.trees[l.path]
		if !ok {
			return nil // optional
		}
		defer closeFD(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if err := target(l.path, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
			return err
		}
		return attach(fd, l.path)
	case ptys:
		return addPtys()
	case file:
		if err := b.file(n, l); !l.optional || !isGone(err) {
			return err
		}
		return nil
	case veil:
		return b.veil(n, l)
	case symlink:
		return b.symlink(n, l)
	case itself:
		if err := b.itself(l); !isGone(err) {
			return err
		}
		return nil
	}
	return fmt.Errorf("layer %q: %w", l.kind, errWords)
}

// file puts a read-only file over an existing one, or creates it.
func (b *builder) file(n int, l layer) error {
	if !l.optional {
		if err := target(l.path, false); err != nil {
			return err
		}
	}
	path := filepath.Join(stagingPoint, "f"+itoa(n))
	mode := os.FileMode(0o444)
	if l.content == "" {
		mode = 0 // no program should take it for the hidden one
	}
	if err := os.WriteFile(path, []byte(l.content), mode); err != nil {
		return err
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	if err := readOnly(fd); err != nil {
		return err
	}
	return attach(fd, l.path)
}

// itself puts what is at a path over itself, read-only.
func (*builder) itself(l layer) error {
	at, err := unix.Openat2(unix.AT_FDCWD, l.path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer closeFD(at)
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &set); err != nil {
		return err
	}
	return attach(fd, l.path)
}

// symlink puts a symbolic link over a file.
func (b *builder) symlink(n int, l layer) error {
	path := filepath.Join(stagingPoint, "l"+itoa(n))
	if err := os.Symlink(l.content, path); err != nil {
		return err
	}
	at, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(at)
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	return attach(fd, l.path)
}

// veil puts an overlay over a directory. Hidden names are whiteouts in the upper layer, which also hide files that are
// created later. A socket in an overlay has another inode than the listening one, so no process can connect to it.
func (b *builder) veil(n int, l layer) error {
	if top, shared := b.veils[l.path]; shared {
		defer closeFD(top)
		if overlay(top, l.path) == nil {
			return nil
		}
		// The system takes no layer that is in another one, as where the kernel's directory is in the veiled one.
	}
	upper := filepath.Join(stagingPoint, "v"+itoa(n))
	if _, err := whiteoutsIn(upper, l.names); err != nil {
		return err
	}
	top, err := unix.Open(upper, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(top)
	return overlay(top, l.path)
}

// overlay puts a directory over the one at a path.
func overlay(top int, path string) error {
	lower, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(lower)
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer closeFD(fs)
	err = unix.FsconfigSetString(fs, "lowerdir", strings.Join([]string{fdPath(top), fdPath(lower)}, ":"))
	if err == nil {
		err = unix.FsconfigSetFlag(fs, "userxattr") // the only kind that a user namespace may read
	}
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	defer closeFD(fd)
	return attach(fd, path)
}

// clone returns a copy of the mounts at a path without symbolic links.
func clone(path string) (int, error) {
	at, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, err
	}
	defer closeFD(at)
	return unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
}

// shareFiles is the number of files in a share: the system needs about 1 KiB for each, which no limit covers.
const shareFiles = "4k"

// tmpfs creates a file system that is not attached yet.
func tmpfs(size, mode, files string) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer closeFD(fs)
	for _, option := range [][2]string{{"size", size}, {"mode", mode}, {"nr_inodes", files}} {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return -1, fmt.Errorf("tmpfs: %w", err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("tmpfs: %w", err)
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// addProcesses mounts a /proc with the processes of this process's PID namespace.
func addProcesses() error {
	fs, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer closeFD(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return err
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	return attach(fd, processDir)
}

func attach(fd int, path string) error {
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

func readOnly(fd int) error {
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// target creates the mount point of a layer if it is in a file system of this package.
func target(path string, dir bool) error {
	if exists(path) {
		return nil
	}
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o444)
}

func fdPath(fd int) string { return "/proc/self/fd/" + itoa(fd) }

// closeFD closes a descriptor that was not written to.
func closeFD(fd int) { _ = unix.Close(fd) }
