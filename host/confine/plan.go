package confine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Ports on 127.0.0.1 inside a program's network. All are below 1024, where few programs listen.
const (
	dialPort     = 900
	ProxyPort    = 901
	UpstreamPort = 902 // the first one; each further upstream has the next port
	dnsPort      = 53
	// maxListeners bounds the sockets that are sent: one message holds 253.
	maxListeners = 240
)

// Place is a file or directory that is in the program's file tree although its surroundings are hidden.
type Place struct {
	Source, Target string // equal if Source is ""
	Write          bool
}

// Share is a writable directory with a file system of its own, which only the program and the daemon see. Without mount
// namespaces the program may read Source instead, and write nothing.
type Share struct {
	Target, Source string // Target "" means that there is none
	Bytes          int64
}

// Request says how a program should be confined. Paths are absolute.
type Request struct {
	Level    string // Default or Strict
	Net      string // NetNone, NetKernel or NetOpen
	Dir      string // the working directory: writable unless ReadOnly; without symbolic links
	ReadOnly bool
	Read     []string // readable in addition to the level's; without symbolic links
	Write    []string // writable; without symbolic links
	Hide     []string // hidden
	Hold     []string // directories: the files of their projects that package held finds are hidden, except for those that Read and Write name
	Private  []string // the kernel's own, hidden
	RootOnly []string // what only user 0 may read, if the program is that user; hidden except for what is requested
	Places   []Place  // the kernel's own that this program gets
	// Copies says by path what stands there inside, if the program may write there: a private copy of the file or directory; "": itself, which
	// it may only read. None can be removed or replaced. A directory that is its own copy is writable. Without mount namespaces it is
	// not used.
	Copies map[string]string
	// Review is a copy of a directory that the program has in its place, with all that it may read and write there; Target "": none. Without
	// mount namespaces, the program is refused.
	Review    Place
	Share     Share
	Sockets   string // the directory, as the program sees it, whose Unix sockets it may connect to
	Program   string // the program's file; "": it is searched for inside
	Homes     Homes
	User      int    // that the program runs as
	Home      string // its home, which is the user's for the program; "": it is not told one
	AllowGaps bool   // start even if Private cannot be hidden
	Ports     []uint16
	Locals    []uint16 // ports of its loopback that the daemon serves
	Publishes bool     // the daemon connects to its ports
	Upstreams int      // number of listeners for upstreams
	// Tmp is a directory for the program's temporary files; "": none is made. It is the program's /tmp if it can be.
	Tmp string
}

// Homes are home directories of the machine.
type Homes struct {
	Own     []string // of the user that the program runs as: readable except for secrets
	Others  []string // hidden
	Secrets Secrets  // of the user that the program runs as
}

// layer is a change to the file tree. Layers are applied from the root down.
type layer struct {
	kind   kind
	path   string
	source string // of a place, of a scratch directory on disk, and of a veil that has shared whiteouts
	write  bool   // of a place
	// optional omits the place if it cannot be mounted, since it was not requested, and a file that is no longer there.
	optional bool
	content  string   // of a file, or where a link leads
	held     bool     // it is done again once another program has replaced what is there; see Plan.Covers
	names    []string // that a veil hides
	size     int64    // of a share, and how many whiteouts a veil shares
}

type kind string

// The kinds of layers, in the order in which those of one path are applied.
const (
	scratch   kind = "1" // an empty writable directory
	empty     kind = "2" // an empty read-only directory
	bindMount kind = "3" // what is at another path, or was there originally
	sized     kind = "4" // an empty writable directory that the daemon sees too
	file      kind = "5" // a read-only file
	veil      kind = "6" // the directory without some names and without Unix sockets
	ptys      kind = "7" // pseudo-terminals that only the program has
	symlink   kind = "8" // a symbolic link over a file, so that programs that replace the file replace what the link leads to
	itself    kind = "9" // what is there, read-only, and by a mount of its own, so that it cannot be replaced
)

// Plan is how a program is confined.
type Plan struct {
	Means
	Strict    bool
	Net       string
	Dir       string
	ReadOnly  bool
	Writable  []string // for Landlock, in addition to Dir unless it is ReadOnly
	Readable  []string // for Landlock, in a strict plan or as exceptions from what is hidden
	Unread    []string // hidden by Landlock only
	Ports     []uint16
	Locals    []uint16
	Publishes bool
	Upstreams int
	Sockets   string // directory whose Unix sockets Landlock allows
	Tmp       string // the program's name of Request.Tmp
	Execs     bool   // the daemon is told of what the program and its descendants execute, if Means.Notify
	Terminal  bool   // the program's own terminal is one of its pseudo-terminals; see OpenTerminal
	layers    []layer
	hand      []int // descriptors for HandOver
}

// New plans how a program is confined on a machine. Errors wrap ErrRefused.
func New(r Request, has Means) (*Plan, error) {
	p, _, err := newPlan(r, has)
	return p, err
}

// newPlan returns also the tree that the plan was made of.
func newPlan(r Request, has Means) (_ *Plan, t *tree, err error) {
	has.PIDs = has.PIDs && has.Mounts // without /proc of its own, a program would not find itself
	p := &Plan{Means: has, Strict: r.Level == Strict, Net: r.Net, Dir: r.Dir, ReadOnly: r.ReadOnly, Ports: r.Ports, Upstreams: r.Upstreams, Sockets: r.Sockets}
	p.Locals, p.Publishes = r.Locals, r.Publishes
	if p.Strict {
		if missing := has.missing(r.Net); len(missing) > 0 {
			return nil, nil, fmt.Errorf("%w: strict needs %s, which this machine lacks", ErrRefused, strings.Join(missing, ", "))
		}
	}
	if !has.hides() && !r.AllowGaps {
		return nil, nil, fmt.Errorf("%w: this machine has no means to hide the kernel's state and keys from agents "+
			"(it needs mount namespaces or Landlock): start it with --allow-gaps to run it anyway", ErrRefused)
	}
	if n := r.Upstreams + len(r.Ports) + 2*len(r.Locals); n > maxListeners {
		return nil, nil, fmt.Errorf("%w: %d upstreams and granted ports are more than %d: grant fewer", ErrRefused, n, maxListeners)
	}
	if err := p.servable(); err != nil {
		return nil, nil, err
	}
	if r.Share.Target != "" && !has.Mounts {
		r.Places = append(slices.Clip(r.Places), Place{Source: r.Share.Source, Target: r.Share.Target})
	}
	if p.Tmp = r.Tmp; r.Tmp != "" {
		if has.Mounts && isDir("/tmp") && !slices.Contains(slices.Concat(r.Read, r.Write, []string{r.Dir}), "/tmp") {
			p.Tmp = "/tmp"
		} else {
			r.Places = append(slices.Clip(r.Places), Place{Target: r.Tmp, Write: true})
		}
	}
	if r.Review.Target != "" {
		if r.Places, err = reviewed(r, has); err != nil {
			return nil, nil, err
		}
	}
	t = newTree(r, has)
	t.overTmp = p.Tmp == "/tmp"
	if err := t.judge(); err != nil {
		return nil, nil, err
	}
	if err := t.findHeld(); err != nil { // not in a directory that is refused, such as /
		return nil, nil, err
	}
	if !has.Mounts {
		p.Unread = slices.Concat(t.hidden, t.dirs)
		p.Writable = append(slices.Clip(t.Write), canonicals(sources(r.Places, true))...)
		p.Readable = append(p.Readable, sources(r.Places, false)...)
		return p, t, nil
	}
	if p.layers, err = t.layers(p.Strict); err != nil {
		return nil, nil, err
	}
	for _, l := range p.layers {
		if l.kind == scratch || l.kind == sized || l.kind == bindMount && l.write {
			p.Writable = append(p.Writable, l.path)
		}
		if l.kind != empty && l.kind != veil {
			p.Readable = append(p.Readable, l.path)
		}
	}
	p.Readable = append(p.Readable, systemFiles()...)
	return p, t, nil
}

// OwnPtys reports whether the program's pseudo-terminals are its own.
func (p *Plan) OwnPtys() bool {
	return p.Mounts && slices.ContainsFunc(p.layers, func(l layer) bool { return l.kind == ptys })
}

// servable refuses ports that cannot be served.
func (p *Plan) servable() error {
	if p.Publishes && !p.Network {
		return fmt.Errorf("%w: to publish a port, the program needs a network of its own: this machine lacks network namespaces", ErrRefused)
	}
	if p.Net != NetKernel || !p.Network {
		return nil
	}
	for _, port := range p.Locals {
		switch {
		case port == dnsPort || port >= dialPort && int(port) < UpstreamPort+p.Upstreams:
			return fmt.Errorf("%w: port %d of localhost is the kernel's own in the program's network: have the service listen on another", ErrRefused, port)
		case !p.Link && (port == 80 || port == 443 || slices.Contains(p.Ports, port)):
			return fmt.Errorf("%w: port %d of localhost is taken by --host, whose names lead to it in the program's network: this machine lacks veth devices, or a writable /proc/sys", ErrRefused, port)
		}
	}
	return nil
}

func sources(places []Place, write bool) (list []string) {
	for _, at := range places {
		if at.Write == write {
			list = append(list, cmp.Or(at.Source, at.Target))
		}
	}
	return list
}

// systemFiles returns what a strict program may read: the files of programs and libraries, and descriptions of the machine.
func systemFiles() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/proc",
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/fd", "/dev/shm",
		"/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup",
	}
}

// Where programs open pseudo-terminals.
const (
	ptysDir    = "/dev/pts"
	ptysMaster = "/dev/ptmx"
)

// processDir is where programs look up processes.
const processDir = "/proc"

// devices are harmless and needed by programs. Others can be opened only if they are requested: a disk contains everything
// that is hidden, and a terminal what the operator types.
var devices = [...]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// secretFiles returns system files that are hidden from a strict program, and from one of user 0, also if they are made
// later.
func secretFiles() []string {
	return []string{
		"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
		"/etc/krb5.keytab", "/etc/security/opasswd",
	}
}

// order sorts layers from the root down, and those of one path by kind.
func order(layers []layer) {
	slices.SortStableFunc(layers, func(a, b layer) int {
		if c := slices.Compare(strings.Split(a.path, "/"), strings.Split(b.path, "/")); c != 0 {
			return c
		}
		return cmp.Compare(a.kind, b.kind)
	})
}

// canonical resolves the symbolic links in the existing part of a path.
func canonical(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil || filepath.Dir(path) == path {
		return real
	}
	return filepath.Join(canonical(filepath.Dir(path)), filepath.Base(path))
}

// resolver is canonical with a memory, for many paths that lie together: it lists each directory once, since most of them do
// not exist.
type resolver struct {
	known map[string]string
	lists map[string]map[string]os.FileMode
}

// newResolver returns a resolver that does not list what is above these directories.
func newResolver(dirs ...string) resolver {
	r := resolver{known: map[string]string{"/": "/"}, lists: map[string]map[string]os.FileMode{}}
	for _, dir := range dirs {
		r.known[dir] = canonical(dir)
	}
	return r
}

func (r resolver) canonical(path string) string {
	if known, ok := r.known[path]; ok {
		return known
	}
	dir, name := filepath.Split(path)
	dir = r.canonical(filepath.Clean(dir))
	names, listed := r.lists[dir]
	if !listed {
		entries, err := os.ReadDir(dir)
		if err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			names = make(map[string]os.FileMode, len(entries))
		}
		for _, entry := range entries {
			names[entry.Name()] = entry.Type()
		}
		r.lists[dir] = names
	}
	at := strings.TrimSuffix(dir, "/") + "/" + name
	mode, exists := names[name]
	switch {
	case names == nil || mode&os.ModeSymlink != 0: // nil: it could not be listed
		at = canonical(at)
	case !exists || !mode.IsDir():
		r.lists[at] = map[string]os.FileMode{}
	}
	r.known[path] = at
	return at
}

// mode returns the type of what is at a path that has no symbolic links, if its directory was listed.
func (r resolver) mode(path string) (os.FileMode, bool) {
	dir, name := filepath.Split(path)
	names := r.lists[filepath.Clean(dir)]
	if names == nil || name == "" {
		return 0, false
	}
	if mode, exists := names[name]; exists {
		return mode &^ gone, true
	}
	return gone, true
}

// relative returns path relative to dir, and whether it is dir or in it. Both must be clean; filepath.Rel would clean them
// again, and New calls this thousands of times.
func relative(path, dir string) (string, bool) {
	switch dir {
	case path:
		return ".", true
	case "":
		return "", false
	case "/":
		return strings.CutPrefix(path, "/")
	}
	rest, begins := strings.CutPrefix(path, dir)
	rel, lies := strings.CutPrefix(rest, "/")
	return rel, begins && lies
}

func within(path, dir string) bool {
	_, ok := relative(path, dir)
	return ok
}

// firstOf splits the first name off a relative path.
func firstOf(rel string) (first string, more bool) {
	first, _, more = strings.Cut(rel, "/")
	return first, more
}

func join(elem ...string) string { return filepath.Join(elem...) }

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
