package confine

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockABI returns the level of the system's Landlock; 0: none.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// written are the rights that change something.
const written = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
	unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
	unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
	unix.LANDLOCK_ACCESS_FS_MAKE_SYM

// readAll are the rights in a strict sandbox's allow-list. Without mounts only the reading of files is controlled, since a
// rule for a directory would include everything in it.
const readAll = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_EXECUTE

// onFiles are the rights that a rule for a single file may name.
const onFiles = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV |
	unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE

// ruleset returns the rights that Landlock should control.
func (p *Plan) ruleset() unix.LandlockRulesetAttr {
	set := unix.LandlockRulesetAttr{Handled_access_fs: written | p.reading()}
	if p.ABI >= abiRename {
		set.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if p.ABI >= abiTruncate {
		set.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if p.ABI >= abiDevices {
		set.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if p.ABI >= abiUnix {
		set.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	if p.ABI >= abiScopes {
		set.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return set
}

// reading returns the rights to read that the plan controls.
func (p *Plan) reading() uint64 {
	switch {
	case p.Strict:
		return readAll
	case len(p.Unread) > 0:
		return unix.LANDLOCK_ACCESS_FS_READ_FILE
	}
	return 0
}

// landlock removes from the calling thread, and from what it executes, the rights that the plan does not grant.
// PR_SET_NO_NEW_PRIVS must be set.
func (p *Plan) landlock() error {
	set := p.ruleset()
	// The size covers the members up to Scoped; an older kernel accepts a longer structure if the rest is zero.
	size := unsafe.Offsetof(set.Quiet_access_fs)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), size, 0)
	if errno != 0 {
		return fmt.Errorf("create ruleset: %w", errno)
	}
	defer closeFD(int(fd))
	// A process that may write above the working directory may have replaced it with a link since the check.
	inDir := set.Handled_access_fs &^ unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX // it never needs a right to its own sockets
	whole := inDir
	if p.ReadOnly {
		inDir = p.reading()
	}
	if inDir != 0 {
		if err := allow(int(fd), p.Dir, inDir, unix.RESOLVE_NO_SYMLINKS); err != nil {
			return err
		}
	}
	type rule struct {
		paths           []string
		rights, resolve uint64
	}
	rules := []rule{{p.Writable, whole, unix.RESOLVE_NO_SYMLINKS}, {devices[:], set.Handled_access_fs & onFiles, 0}}
	if p.OwnPtys() { // otherwise these are the operator's
		rules = append(rules, rule{[]string{ptysDir, ptysMaster}, set.Handled_access_fs & (onFiles | readAll), 0})
	}
	if p.ABI >= abiUnix && p.Sockets != "" {
		rules = append(rules, rule{[]string{p.Sockets}, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, 0})
	}
	switch {
	case p.Strict:
		rules = append(rules, rule{p.Readable, readAll, 0})
	case len(p.Unread) > 0:
		visible, err := siblings("/", p.Unread)
		if err != nil {
			return err
		}
		rules = append(
			rules, rule{p.Readable, unix.LANDLOCK_ACCESS_FS_READ_FILE, 0},
			// An entry that was replaced with a link after it was listed may lead to hidden files.
			rule{visible, unix.LANDLOCK_ACCESS_FS_READ_FILE, unix.RESOLVE_NO_SYMLINKS},
		)
	}
	for _, r := range rules {
		for _, path := range r.paths {
			err := allow(int(fd), path, r.rights, r.resolve)
			if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) && !errors.Is(err, unix.ELOOP) {
				return err
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("restrict: %w", errno)
	}
	return nil
}

// allow adds a rule: rights below a path, which is resolved with the flags resolve. Every kernel with Landlock has
// openat2(2).
func allow(set int, path string, rights, resolve uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer closeFD(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFLNK: // a rule is for the file itself, and a link was resolved before
		return nil
	default:
		rights &= onFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow %s: %w", path, errno)
	}
	return nil
}

// siblings returns entries that together cover dir except for what is hidden: the entries of each directory above a hidden
// path. It omits links, since a link grants no right that its target does not.
func siblings(dir string, hidden []string) ([]string, error) {
	leads := map[string]bool{} // entry: whether it is hidden itself (true), or above something hidden (false)
	for _, path := range hidden {
		rest, ok := relative(path, dir)
		if !ok || rest == "." {
			continue
		}
		first, more := firstOf(rest)
		leads[first] = leads[first] || !more
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
			return nil, nil // its content cannot be read either
		}
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var list []string
	for _, entry := range entries {
		path := join(dir, entry.Name())
		itself, some := leads[entry.Name()]
		switch {
		case entry.Type()&os.ModeSymlink != 0 || itself:
		case some:
			below, err := siblings(path, hidden)
			if err != nil {
				return nil, err
			}
			list = append(list, below...)
		default:
			list = append(list, path)
		}
	}
	return list, nil
}
