package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
)

// copier copies a tree.
type copier struct {
	ctx    context.Context
	skip   skips
	share  bool  // files share their blocks, unless the file system has refused that
	limit  int64 // of copied bytes
	forced bool  // entries that their owner may not read are made readable while they are copied

	files, bytes int64
	leftOut      []string
}

// skips are patterns of paths that are not copied.
type skips []string

// match reports whether a path is skipped. A pattern with a slash is compared with the whole path, other patterns with its
// last name.
func (s skips) match(rel string) bool {
	for _, pattern := range s {
		at := rel
		if !strings.Contains(pattern, "/") {
			at = path.Base(rel)
		}
		if ok, err := path.Match(strings.Trim(pattern, "/"), at); ok && err == nil { // check has accepted the patterns
			return true
		}
	}
	return false
}

// check returns an error for a malformed pattern.
func (s skips) check() error {
	for _, pattern := range s {
		if _, err := path.Match(pattern, ""); err != nil || strings.Trim(pattern, "/") == "" {
			return fault.UsageInvalid.New("%q is not a pattern: give a name such as node_modules, or a path such as build/*.o", pattern)
		}
	}
	return nil
}

// tree copies from to to, a new directory, with its attributes.
func (c *copier) tree(from, to *folder, rel string) error {
	list, err := from.entries()
	for _, e := range list {
		if err != nil {
			break
		}
		if err = context.Cause(c.ctx); err == nil {
			err = named(e.name, c.entry(from, to, e, path.Join(rel, e.name)))
		}
	}
	if err != nil {
		return err
	}
	self, err := from.self()
	if err != nil {
		return err
	}
	return dress(to.File, self, to, ".")
}

func (c *copier) entry(from, to *folder, e *entry, rel string) error {
	switch {
	case c.skip.match(rel):
		return nil
	case e.special():
		c.leftOut = append(c.leftOut, rel+": no file")
		return nil
	case from.mounted(e):
		c.leftOut = append(c.leftOut, rel+": another file system")
		return nil
	case e.dir():
		return c.dir(from, to, e, rel)
	}
	c.files++
	if e.symlink() {
		return copyLink(from, to, e, e.name)
	}
	return c.file(from, to, e, e.name)
}

func (c *copier) dir(from, to *folder, e *entry, rel string) (err error) {
	source, err := c.open(from, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := to.mkdir(e.name)
	if err != nil {
		return err
	}
	return errors.Join(c.tree(source, target, rel), target.Close())
}

func (c *copier) open(at *folder, e *entry) (*folder, error) {
	if c.forced {
		return at.openAnyway(e)
	}
	return at.open(e)
}

func (c *copier) read(at *folder, e *entry) (*os.File, error) {
	if c.forced {
		return at.readAnyway(e)
	}
	return at.read(e)
}

// copyLink creates a copy of a symbolic link under another name.
func copyLink(from, to *folder, e *entry, name string) error {
	target, err := from.link(e)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(target, to.fd, name); err != nil {
		return err
	}
	return to.dressLink(name, e)
}

// file copies a regular file to a new name.
func (c *copier) file(from, to *folder, e *entry, name string) (err error) {
	source, err := c.read(from, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := to.create(name)
	if err != nil {
		return err
	}
	if err = c.content(source, target); err == nil {
		err = dress(target, e, to, name)
	}
	return errors.Join(err, target.Close())
}

// content copies the bytes of a file.
func (c *copier) content(source, target *os.File) error {
	if c.share {
		err := clone(target, source)
		if err == nil {
			return nil
		}
		if !cannotClone(err) {
			return err
		}
		c.share = false
	}
	n, err := copyData(target, source, c.limit-c.bytes)
	if c.bytes += n; c.bytes > c.limit {
		return tooBig(c.limit)
	}
	return err
}

func tooBig(limit int64) error {
	return fault.SnapshotTooBig.New("a copy would take more than %d bytes, and the file system cannot share them", limit).
		WithFix("raise --snapshot-limit, or leave parts out with --snapshot-skip")
}

// cannotClone reports whether err means that two files cannot share blocks.
func cannotClone(err error) bool {
	for _, no := range []error{unix.EOPNOTSUPP, unix.EXDEV, unix.EINVAL, unix.ENOTTY, unix.EPERM, unix.ENOSYS, errors.ErrUnsupported} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// measure adds up the size of a copy of f, and tries with the first file whether the store in probe can share its blocks.
// It ends early if there is no limit to check.
func (c *copier) measure(f, probe *folder, rel string) error {
	list, err := f.entries()
	if err != nil {
		return err
	}
	for _, e := range list {
		at := path.Join(rel, e.name)
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		switch {
		case c.skip.match(at) || f.mounted(e):
		case e.dir():
			err = c.measureBelow(f, probe, e, at)
		case e.regular() && e.size > 0:
			err = c.weigh(f, probe, e)
		}
		if err != nil {
			return named(e.name, err)
		}
		if c.share && c.bytes > 0 {
			return nil
		}
	}
	return nil
}

func (c *copier) measureBelow(f, probe *folder, e *entry, rel string) error {
	below, err := c.open(f, e)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(c.measure(below, probe, rel), below.Close())
}

func (c *copier) weigh(f, probe *folder, e *entry) error {
	if c.bytes == 0 {
		if err := c.probe(f, probe, e); err != nil {
			return err
		}
	}
	if c.bytes += max(e.taken, 1); !c.share && c.bytes > c.limit {
		return tooBig(c.limit)
	}
	return nil
}

// probe tries whether the store can share blocks with a file.
func (c *copier) probe(f, store *folder, e *entry) (err error) {
	source, err := c.read(f, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	name := random("probe-")
	target, err := store.create(name)
	if err != nil {
		return err
	}
	err = clone(target, source)
	c.share = err == nil
	if err != nil && cannotClone(err) {
		err = nil
	}
	return errors.Join(err, target.Close(), unix.Unlinkat(store.fd, name, 0))
}

// room returns an error for a copy that does not fit on the disk of the store, which the kernel's journal may use too.
func room(store *folder, bytes int64) error {
	const spare = 64 << 20
	var st unix.Statfs_t
	if err := unix.Fstatfs(store.fd, &st); err != nil {
		return err
	}
	if free := int64(st.Bavail) * int64(st.Bsize); bytes > free-spare {
		return fault.SnapshotTooBig.New("a copy would take %d bytes, and the disk has %d left", bytes, free).
			WithFix("free space: %s", fmt.Sprintf("%q removes older copies", "pwos snapshots rm ID"))
	}
	return nil
}
