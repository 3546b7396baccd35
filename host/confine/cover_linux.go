package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// openNamespaces opens what Cover needs, for HandOver.
func (p *Plan) openNamespaces() error {
	names := []string{"mnt"}
	if p.User {
		names = append(names, "user")
	}
	for _, name := range names {
		fd, err := unix.Open("/proc/thread-self/ns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		p.hand = append(p.hand, fd)
	}
	return nil
}

// Cover hides what has replaced files of Covers in the program's mount namespace. The calling thread enters it, and keeps it: the process
// must be in the user namespace that owns it, and end afterwards.
func (p *Plan) Cover(mounts int) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leave working directory: %w", err)
	}
	if err := unix.Setns(mounts, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter mount namespace: %w", err)
	}
	unix.Umask(0)
	b := builder{plan: p}
	if err := b.stage(); err != nil {
		return fmt.Errorf("mount staging: %w", err)
	}
	var errs []error
	for i, l := range p.layers {
		if !l.held {
			continue
		}
		if err := b.cover(i, l); err != nil && !isGone(err) {
			errs = append(errs, fmt.Errorf("%s: %w", l.path, err))
		}
	}
	if err := unix.Unmount(stagingPoint, unix.MNT_DETACH); err != nil {
		errs = append(errs, fmt.Errorf("unmount staging: %w", err))
	}
	return errors.Join(errs...)
}

// cover hides one file, or makes it read-only, unless it is so, and pins the directories above it, as they were at the start.
func (b *builder) cover(n int, l layer) error {
	var dirs []string
	for dir := filepath.Dir(l.path); dir != b.plan.Dir && within(dir, b.plan.Dir); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		switch mounted, err := isMounted(dir, unix.S_IFDIR); {
		case err != nil:
			return err
		case mounted:
			continue
		}
		fd, err := clone(dir)
		if err == nil {
			err = attach(fd, dir)
			closeFD(fd)
		}
		if err != nil {
			return err
		}
	}
	kinds := []uint16{unix.S_IFREG, unix.S_IFLNK}
	if l.kind == itself {
		kinds = append(kinds, unix.S_IFDIR)
	}
	if mounted, err := isMounted(l.path, kinds...); err != nil || mounted {
		return err
	}
	return b.add(n, l)
}

// isMounted reports whether something is mounted at a path, which must be of one of these types and not lead through a symbolic link.
func isMounted(path string, kinds ...uint16) (bool, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return false, err
	}
	defer closeFD(fd)
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE, &st); err != nil {
		return false, err
	}
	if !slices.Contains(kinds, st.Mode&unix.S_IFMT) {
		return false, unix.ENOTDIR
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// isGone reports whether an error says that a path does not lead to a file any more.
func isGone(err error) bool {
	for _, gone := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// JoinCapabilities are the capabilities that Cover needs in the user namespace.
func JoinCapabilities() []uintptr { return []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT} }
