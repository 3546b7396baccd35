package confine

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// tree computes the layers of a program's file tree.
type tree struct {
	Request
	has     Means
	hidden  []string // never shown, except for the kernel's own places in it
	closed  []string // hidden unless something in it is requested
	held    []string // files that are shown without their content
	outside []string // what programs outside run, which the program may only read
	dirs    []string // those of closed that only user 0 may read
	mounts  []mount  // of this process's tree
	socks   []string // Unix sockets that have a path
	fixed   []string // paths of Copies, which cannot be replaced
	links   []layer  // over those of them that are files
	// overTmp says that /tmp is Request.Tmp.
	overTmp bool
	seen    map[string]os.FileMode // what is at the paths that were looked at; nothing: gone
	places  resolver               // of the hidden places
}

// gone is the mode of a path at which nothing is.
const gone = os.ModeIrregular

// mode returns the type of what is at a path, as it was when the tree first looked.
func (t *tree) mode(path string) os.FileMode {
	mode, ok := t.seen[path]
	if ok {
		return mode
	}
	if mode, ok = t.places.mode(path); !ok {
		mode = gone
		if info, err := os.Lstat(path); err == nil {
			mode = info.Mode().Type() &^ gone
		}
	}
	t.seen[path] = mode
	return mode
}

func (t *tree) isDir(path string) bool { return t.mode(path).IsDir() }

func (t *tree) exists(path string) bool { return t.mode(path) != gone }

func newTree(r Request, has Means) *tree {
	t := &tree{Request: r, has: has, mounts: mountsHere(), seen: map[string]os.FileMode{}, places: newResolver(r.Homes.Own...)}
	if !has.mediates() {
		t.socks = socketsHere()
	}
	t.Homes.Own, t.Homes.Others = canonicals(t.Homes.Own), canonicals(t.Homes.Others)
	t.Read, t.Write = cleaned(r.Read), cleaned(r.Write)
	t.Dir = filepath.Clean(r.Dir)
	if r.Program != "" {
		t.Program = filepath.Clean(r.Program)
	}
	t.Places = slices.Clone(r.Places)
	for i, at := range t.Places {
		t.Places[i].Target = filepath.Clean(at.Target)
	}
	t.hidden = canonicals(slices.Concat(r.Private, r.Hide))
	for _, path := range slices.Concat(r.Homes.Secrets.Paths, matches(r.Homes.Secrets.Patterns)) {
		t.hidden = append(t.hidden, t.places.canonical(path))
	}
	if r.Level == Strict || len(r.RootOnly) > 0 {
		t.hidden = append(t.hidden, secretFiles()...)
	}
	if r.Level == Strict {
		t.hidden = append(t.hidden, "/etc/ssh")
	}
	for _, path := range r.RootOnly {
		switch {
		case t.requested(path):
		case t.isDir(path):
			t.dirs = append(t.dirs, path)
		default:
			t.hidden = append(t.hidden, path)
		}
	}
	t.closed = append(t.closed, t.dirs...)
	for _, path := range t.hidden {
		t.hidden = append(t.hidden, t.aliases(path)...)
	}
	slices.Sort(t.hidden)
	t.hidden = slices.Compact(t.hidden)
	t.findCopies()
	if dir := os.Getenv("XDG_RUNTIME_DIR"); strings.HasPrefix(dir, "/") {
		t.closed = append(t.closed, canonical(dir))
	}
	for _, home := range t.Homes.Others {
		if !slices.ContainsFunc(t.Homes.Own, func(own string) bool { return within(own, home) }) {
			t.closed = append(t.closed, home)
		}
	}
	for _, path := range t.closed {
		t.closed = append(t.closed, t.aliases(path)...)
	}
	t.closed = append(t.closed, "/run", canonical("/var/run"), "/dev/mqueue", "/dev/shm", "/tmp", canonical("/var/tmp"))
	if r.Level == Strict {
		t.closed = append(t.closed, outsideSystem()...)
	}
	slices.Sort(t.closed)
	t.closed = slices.Compact(t.closed)
	return t
}

// requested reports whether a path is, or is in, a place that the program gets.
func (t *tree) requested(path string) bool {
	return t.placed(path) || t.covered(path, t.Read) || t.covered(path, t.Write) || within(path, t.Dir) || t.inHome(path)
}

func canonicals(paths []string) []string {
	list := make([]string, 0, len(paths))
	for _, path := range paths {
		list = append(list, canonical(path))
	}
	return list
}

func cleaned(paths []string) []string {
	list := make([]string, 0, len(paths))
	for _, path := range paths {
		list = append(list, filepath.Clean(path))
	}
	return list
}

// outsideSystem returns the directories below / without any of systemFiles.
func outsideSystem() []string {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil // Landlock lets nothing in them be read
	}
	var list []string
	for _, entry := range entries {
		path := "/" + entry.Name()
		if entry.IsDir() && !slices.ContainsFunc(systemFiles(), func(file string) bool { return within(file, path) }) {
			list = append(list, path)
		}
	}
	return list
}

// judge returns an error for requests for hidden paths: hiding takes precedence over Read and Write.
func (t *tree) judge() error {
	if t.Dir == "/" || slices.Contains(t.Homes.Own, t.Dir) || slices.Contains(t.Homes.Others, t.Dir) {
		return fmt.Errorf("%w: an agent may write all of its working directory, so it cannot be %s: give it another directory (--dir, --own-dir)", ErrRefused, t.Dir)
	}
	for _, asked := range []struct {
		flag  string
		paths []string
	}{{"working directory", []string{t.Dir}}, {"--read", t.Read}, {"--write", t.Write}} {
		for _, path := range asked.paths {
			if canonical(path) != path {
				return fmt.Errorf("%w: %s %s goes through a symbolic link, which an agent may have created: name the target of the link", ErrRefused, asked.flag, path)
			}
			at := slices.IndexFunc(t.hidden, func(hidden string) bool { return within(path, hidden) })
			if at < 0 || t.placed(path) && !within(path, t.Review.Target) {
				continue
			}
			return fmt.Errorf("%w: %s %s is in %s, which is hidden from agents: name another, or run it with --sandbox off", ErrRefused, asked.flag, path, t.hidden[at])
		}
	}
	for _, path := range t.Write {
		if path == "/" || slices.Contains(t.Homes.Own, path) {
			return fmt.Errorf("%w: --write %s would grant everything: name the directories that the agent must write", ErrRefused, path)
		}
	}
	return nil
}

// placed reports whether the kernel itself gives a path to the program.
func (t *tree) placed(path string) bool {
	return within(path, t.Share.Target) || slices.ContainsFunc(t.Places, func(at Place) bool { return within(path, at.Target) })
}

// layers returns the changes to the file tree, in order.
func (t *tree) layers(strict bool) ([]layer, error) {
	list := t.given()
	for _, path := range t.closed {
		switch {
		case path == "/tmp" && t.overTmp:
			list = append(list, layer{kind: scratch, path: path, source: t.Tmp})
		case path == "/dev/shm" || path == "/tmp" || path == "/var/tmp":
			if t.isDir(path) {
				list = append(list, layer{kind: scratch, path: path})
			}
		case t.isDir(path):
			list = append(list, layer{kind: empty, path: path})
		}
	}
	list = append(list, t.paths(list)...)
	order(list)
	veils := map[string][]string{}
	for _, path := range t.hidden {
		list = t.hide(list, veils, path, "")
	}
	for _, path := range t.held {
		list = t.hide(list, veils, path, heldText)
	}
	for _, path := range t.outside {
		if at := deepest(list, path); at.write {
			list = append(t.pinned(list, at, path), layer{kind: itself, path: path, held: true, optional: true})
		}
	}
	if !t.has.mediates() {
		list = t.hideSockets(list, veils)
	}
	t.merge(list, veils)
	for dir, names := range veils {
		slices.Sort(names) // what is in a hidden directory comes after it
		list = append(list, layer{kind: veil, path: dir, names: names})
	}
	list = t.again(list, veils)
	order(list)
	return list, nil
}

// given returns the places: the working directory, what was requested, and what the kernel gives.
func (t *tree) given() []layer {
	var list []layer
	add := func(source, target string, write bool) {
		at := slices.IndexFunc(list, func(l layer) bool { return l.path == target })
		if at < 0 {
			list = append(list, layer{kind: bindMount, path: target, source: source, write: write})
		} else if write {
			list[at].write = true
		}
	}
	for _, at := range t.Places {
		add(cmp.Or(at.Source, at.Target), at.Target, at.Write)
	}
	if t.Share.Target != "" {
		list = append(list, layer{kind: sized, path: t.Share.Target, size: t.Share.Bytes})
	}
	add(t.source(t.Dir), t.Dir, !t.ReadOnly)
	for _, path := range t.Write {
		if deepest(list, path).write && !t.isDir(path) && !t.covered(path, t.Read) {
			continue // as a mount it could not be replaced
		}
		add(t.source(path), path, true)
	}
	for _, path := range t.Read {
		add(t.source(path), path, false)
		if at := deepest(list, parent(path)); at.write && !within(at.path, path) {
			list = t.pinned(list, at, path)
		}
	}
	list = t.withCopies(list)
	for _, path := range devices {
		if !slices.ContainsFunc(list, func(l layer) bool { return within(l.path, "/dev") && within(path, l.path) }) {
			list = append(list, layer{kind: bindMount, path: path, source: path, optional: true})
		}
	}
	list = append(list, t.passwd()...)
	if t.has.Ptys && !slices.ContainsFunc(list, func(l layer) bool {
		return within(l.path, ptysDir) || within(l.path, "/dev") && within(ptysDir, l.path)
	}) {
		list = append(list, layer{kind: ptys, path: ptysDir})
	}
	if t.has.PIDs {
		for _, m := range t.mounts { // a container may have mounted something over what would tell of its machine
			if m.point != processDir && within(m.point, processDir) {
				list = append(list, layer{kind: bindMount, path: m.point, source: m.point, optional: true})
			}
		}
	}
	if t.Program != "" && !t.covered(t.Program, t.hidden) && t.covered(t.Program, t.closed) && !slices.ContainsFunc(list, func(l layer) bool { return within(t.Program, l.path) }) {
		add(t.Program, t.Program, false)
	}
	// On many machines the resolver's configuration is a link into /run.
	const resolver = "/etc/resolv.conf"
	if at := canonical(resolver); t.exists(at) {
		if t.Net == NetKernel {
			list = append(list, layer{kind: file, path: at, content: "nameserver 127.0.0.1\n"})
		} else if t.covered(at, t.closed) {
			add(at, at, false)
		}
	}
	if at := canonical("/etc/hosts"); t.exists(at) && t.Net == NetKernel {
		list = append(list, layer{kind: file, path: at, content: hostsFile()})
	}
	return list
}

// hostsFile returns the program's /etc/hosts. It has no other name of the machine's: the kernel looks those up, since their
// addresses do not exist in the program's network.
func hostsFile() string {
	text := "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
	if name, err := os.Hostname(); err == nil && name != "" && name != "localhost" && !strings.ContainsFunc(name, unicode.IsSpace) {
		text += "127.0.1.1 " + name + "\n"
	}
	return text
}

// paths adds the directories in the program's own /tmp that lead to places. They are read-only, as they are elsewhere.
func (t *tree) paths(list []layer) (add []layer) {
	for _, l := range list {
		if l.kind != bindMount {
			continue
		}
		for _, above := range list {
			rel, ok := relative(l.path, above.path)
			if above.kind != scratch || !ok || rel == "." {
				continue
			}
			first, more := firstOf(rel)
			dir := join(above.path, first)
			same := func(l layer) bool { return l.path == dir }
			if more && !slices.ContainsFunc(list, same) && !slices.ContainsFunc(add, same) {
				add = append(add, layer{kind: empty, path: dir})
			}
		}
	}
	return add
}

func (t *tree) covered(path string, by []string) bool {
	return slices.ContainsFunc(by, func(dir string) bool { return within(path, dir) })
}

// hide hides a path: with an empty directory over an existing one, otherwise by omitting its name from the directory above,
// so that what is created there later is hidden too. Where that cannot be done, a file has the content instead.
func (t *tree) hide(list []layer, veils map[string][]string, path, content string) []layer {
	inside := slices.ContainsFunc(list, func(l layer) bool {
		return (l.kind == bindMount || l.kind == sized) && l.path != path && within(l.path, path)
	})
	at := deepest(list, path)
	if !at.shows() && !inside {
		return list
	}
	above := path
	for !t.isDir(above) || above == path {
		above = parent(above)
	}
	writable := at.write
	if writable {
		list = t.pinned(list, at, path)
		at = deepest(list, path)
	}
	for _, home := range t.Homes.Own {
		if within(path, home) && at.path == deepest(list, home).path && t.isDir(home) && home != "/" {
			above = home
		}
	}
	switch veil := t.veilable(above); {
	case t.isDir(path) && (inside || writable || !veil || !t.inHome(path)):
		return append(list, layer{kind: empty, path: path})
	case !veil || writable:
		if t.exists(path) {
			return append(list, layer{kind: file, path: path, content: content, held: writable || content != "", optional: true})
		}
		return list // there is no name to hide
	}
	name, _ := relative(path, above)
	veils[above] = append(veils[above], name)
	return list
}

// merge makes one veil of those that lie in each other: the system mounts at most two overlays over each other.
func (t *tree) merge(list []layer, veils map[string][]string) {
	dirs := slices.Sorted(maps.Keys(veils))
	for _, dir := range dirs {
		for _, above := range dirs {
			rel, ok := relative(dir, above)
			_, remains := veils[above]
			between := func(m mount) bool { return m.point != above && within(m.point, above) && within(dir, m.point) }
			if !ok || rel == "." || !remains || deepest(list, dir).path != deepest(list, above).path || slices.ContainsFunc(t.mounts, between) {
				continue
			}
			for _, name := range veils[dir] {
				veils[above] = append(veils[above], join(rel, name))
			}
			delete(veils, dir)
			break
		}
	}
}

// pinned mounts the directories between a writable place and what is hidden in it. A mount cannot be renamed, and after a
// rename the next program would see what is in the directory.
func (t *tree) pinned(list []layer, at layer, path string) []layer {
	for dir := parent(path); dir != at.path && t.isDir(dir); dir = parent(dir) {
		if slices.ContainsFunc(list, func(l layer) bool { return l.kind == bindMount && l.path == dir }) {
			continue // another path has pinned it
		}
		list = append(list, layer{kind: bindMount, path: dir, source: join(cmp.Or(at.source, at.path), strings.TrimPrefix(dir, at.path)), write: true})
	}
	return list
}

// veilable reports whether an overlay can cover a directory. In a user namespace it cannot if another file system is
// mounted below, since such a mount is locked in place.
func (t *tree) veilable(dir string) bool {
	return t.has.Overlay && dir != "/" && !(t.has.User && slices.ContainsFunc(t.mounts, func(m mount) bool { return m.point != dir && within(m.point, dir) }))
}

func (t *tree) inHome(path string) bool { return t.covered(path, t.Homes.Own) }

// again adds the mounts below a veil, which would otherwise be missing in it.
func (t *tree) again(list []layer, veils map[string][]string) []layer {
	for _, m := range t.mounts {
		for dir := range veils {
			if m.point == dir || !within(m.point, dir) || !visible(list, m.point) || t.covered(m.point, t.hidden) ||
				slices.ContainsFunc(list, func(l layer) bool {
					return l.path == m.point || l.kind == bindMount && within(m.point, l.path) && within(l.path, dir)
				}) {
				continue
			}
			list = append(list, layer{kind: bindMount, path: m.point, source: m.point, optional: true})
		}
	}
	return list
}

// socketDirs returns the directories with visible sockets of other programs.
func (t *tree) socketDirs(list []layer) []string {
	var dirs []string
	for _, path := range t.socks {
		dir := canonical(parent(path))
		at := deepest(list, dir)
		if dir == "/" || !visible(list, dir) || at.write || t.covered(dir, t.hidden) || t.inHome(dir) && at.kind != bindMount || !t.isDir(dir) || slices.Contains(dirs, dir) {
			continue
		}
		if at.kind == bindMount && t.placed(at.path) {
			continue // a place of the kernel's own
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// hideSockets hides the Unix sockets of other programs that are there, and those that are made later in home directories.
func (t *tree) hideSockets(list []layer, veils map[string][]string) []layer {
	for _, dir := range append(t.socketDirs(list), t.Homes.Own...) {
		if t.isDir(dir) && visible(list, dir) && t.veilable(dir) {
			veils[dir] = slices.Clip(veils[dir])
		}
	}
	return append(list, t.masks(list)...)
}

// masks returns an empty file for each Unix socket of another program in a writable place. It stays until the other program
// replaces the socket.
func (t *tree) masks(list []layer) (masks []layer) {
	for _, path := range t.socks {
		path = join(canonical(parent(path)), filepath.Base(path))
		at := deepest(list, path)
		if at.kind == bindMount && at.write && at.path != path && !t.placed(path) && isSocket(path) {
			masks = append(masks, layer{kind: file, path: path})
		}
	}
	return masks
}

// deepest returns the layer that determines what is at a path. The zero layer is the machine's own tree.
func deepest(list []layer, path string) (found layer) {
	for _, l := range list {
		if within(path, l.path) && len(l.path) >= len(found.path) && l.kind != veil && l.kind != file && l.kind != symlink {
			if len(l.path) > len(found.path) || l.kind > found.kind {
				found = l
			}
		}
	}
	return found
}

// visible reports whether a path shows the machine's own file.
func visible(list []layer, path string) bool { return deepest(list, path).shows() }

// shows reports whether what is in a layer is the machine's own.
func (l layer) shows() bool {
	switch l.kind {
	case scratch, empty, sized, ptys:
		return false
	}
	return true
}

func parent(path string) string { return filepath.Dir(path) }

func itoa(n int) string { return strconv.Itoa(n) }
