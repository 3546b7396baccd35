package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Gap is a path that is not covered, and why.
type Gap struct{ Path, Why string }

// ErrTooLarge is the error for a tree with more files, or more bytes in them, than the options allow.
var ErrTooLarge = errors.New("the tree is too large")

// tick is how long the clock of a file system may stand still: a file that changed that shortly before it was read may have changed
// again without another time.
const tick = 20 * time.Millisecond

// scan compares a tree with what it was.
type scan struct {
	*Store
	ctx    context.Context
	root   *os.File
	dev    uint64
	whole  bool // every directory is listed, not only those with an event
	gaps   []Gap
	buffer []byte          // for contents; nil: none was read yet
	linked map[uint64]bool // inodes of files with several names of which one was read again, or went
	left   map[string]bool // directories that are not covered, since there were too many files
	told   map[string]bool // those of the last look, if nothing happened in them since
}

// look adds to what is pending what changed in the tree since it was looked at last, and returns what is not covered.
func (s *Store) look(ctx context.Context) (_ []Gap, err error) {
	c := &scan{Store: s, ctx: ctx}
	if c.root, err = openRoot(s.root); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.root.Close()) }()
	var st unix.Stat_t
	if err := unix.Fstat(int(c.root.Fd()), &st); err != nil {
		return nil, fmt.Errorf("stat %s: %w", s.root, err)
	}
	c.dev = device(&st)
	dirty, all := s.watch.take()
	if id := [2]uint64{c.dev, st.Ino}; s.at == [2]uint64{} {
		s.at = id
	} else if id != s.at || !s.watch.has("") { // another directory took its place
		s.watch.remove("")
		s.walk, s.at = true, id
	}
	for path := range s.uncovered {
		_, had := dirty[path]
		c.told = with(c.told, path, !all && !had)
	}
	if dirty == nil {
		dirty = make(map[string]names)
	}
	for path := range s.uncovered {
		parent, _ := split(path) // which leads to one that is not known
		dirty[path], dirty[parent] = anyName, anyName
	}
	for path := range s.touched {
		dirty[path] = anyName
	}
	if s.full && !s.tooFull() { // what did not fit is read now
		s.full, s.walk = false, true
	}
	if c.whole = all || s.walk || len(s.dirs) == 0; c.whole {
		err = c.dir("", c.root, 0)
	} else {
		err = c.some(dirty)
		if err == nil && len(s.uncovered) > 0 && c.left == nil { // all fits again: what is below those that did not is not known
			c.whole = true
			err = c.dir("", c.root, 0)
		}
	}
	if err != nil {
		s.walk = true // what was taken from the watch is known again only by a walk
		return nil, err
	}
	s.walk = false
	clear(s.touched)
	s.uncovered = c.left
	return c.gaps, nil
}

// tooFull reports whether the store has more bytes than it may.
func (s *Store) tooFull() bool { return s.options.MaxBytes > 0 && s.pack.size > s.options.MaxBytes }

func with(set map[string]bool, path string, value bool) map[string]bool {
	if set == nil {
		set = make(map[string]bool)
	}
	set[path] = value
	return set
}

// names are those of a directory that had an event. Of more than mostNames it is not kept which: all of the directory is listed.
type names map[string]bool

const mostNames = 64

// anyName stands for all names of a directory.
var anyName = names{"": true}

// with returns the names with another one; "" stands for all.
func (n names) with(name string) names {
	switch {
	case n.any():
		return n
	case name == "" || len(n) >= mostNames:
		return anyName
	case n == nil:
		n = make(names)
	}
	n[name] = true
	return n
}

func (n names) any() bool { return n[""] }

// some looks at what had an event in directories, and at what is new below them.
func (c *scan) some(dirty map[string]names) error {
	for _, path := range slices.Sorted(maps.Keys(dirty)) { // a directory before those below it
		if _, known := c.dirs[path]; !known {
			continue // it is gone, or was listed as new
		}
		dir, err := openPath(c.root, path)
		if isGone(err) {
			continue // the directory above it has an event too
		}
		if err == nil {
			err = errors.Join(c.part(path, dir, dirty[path]), dir.Close())
		}
		if err != nil && !c.gap(path, err) {
			return err
		}
	}
	if len(c.linked) == 0 {
		return nil
	}
	others := make(map[string]names) // of the same files, which had no event
	for path, items := range c.dirs {
		for i := range items {
			if it := &items[i]; c.linked[it.stamp.ino] && it.state.isFile() && !dirty[path].any() && !dirty[path][it.name] {
				others[path] = others[path].with(it.name)
			}
		}
	}
	c.linked = nil
	return c.some(others)
}

// gap notes what is not covered because of an error. It returns false for errors that end the scan.
func (c *scan) gap(path string, err error) bool {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, errStore) || c.ctx.Err() != nil {
		return false
	}
	c.gaps = append(c.gaps, Gap{path, err.Error()})
	return true
}

// dir compares a directory with what it was, and directories below it that are new, or all if the scan is of the whole tree.
func (c *scan) dir(path string, dir *os.File, depth int) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		return fmt.Errorf("directories are nested more than %d deep", maxDepth)
	}
	if !c.watch.has(path) {
		c.watch.add(path, dir)
	}
	names, err := namesIn(dir)
	if err != nil {
		return fmt.Errorf("list directory: %w", err)
	}
	old := c.dirs[path]
	if most := c.options.MaxFiles; most > 0 && c.count+int64(len(names)-len(old)) > most {
		err := fmt.Errorf("%w: it has more than %d files", ErrTooLarge, most)
		if !c.filled {
			return err
		}
		c.left = with(c.left, path, true)
		if !c.told[path] {
			c.gaps = append(c.gaps, Gap{path, err.Error()})
		}
		return nil
	}
	items := make([]item, 0, len(names))
	var below []string
	for _, name := range names {
		var was item
		for len(old) > 0 && old[0].name < name {
			c.gone(path, old[0])
			old = old[1:]
		}
		if len(old) > 0 && old[0].name == name {
			was, old = old[0], old[1:]
		}
		now, deeper, err := c.entry(dir, path, name, was)
		if err != nil {
			return err
		}
		if now.state.Exists() {
			items = append(items, now)
		}
		if deeper {
			below = append(below, name)
		}
	}
	for _, was := range old {
		c.gone(path, was)
	}
	c.count += int64(len(items) - len(c.dirs[path]))
	c.dirs[path] = items
	return c.below(path, dir, below, depth)
}

// part compares those entries of a directory that had an event. A long directory is not listed for a few of them.
func (c *scan) part(path string, dir *os.File, of names) error {
	depth := strings.Count(path, "/")
	if most := c.options.MaxFiles; of.any() || !c.watch.has(path) || most > 0 && c.count+int64(len(of)) > most {
		return c.dir(path, dir, depth)
	}
	items := slices.Clone(c.dirs[path])
	var below []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		i, found := slices.BinarySearchFunc(items, name, byName)
		var was item
		if found {
			was = items[i]
		}
		now, deeper, err := c.entry(dir, path, name, was)
		if err != nil {
			return err
		}
		switch exists := now.state.Exists(); {
		case exists && found:
			items[i] = now
		case exists:
			items = slices.Insert(items, i, now)
		case found:
			items = slices.Delete(items, i, i+1)
		}
		if deeper {
			below = append(below, name)
		}
	}
	c.count += int64(len(items) - len(c.dirs[path]))
	c.dirs[path] = items
	return c.below(path, dir, below, depth)
}

// entry compares an entry of a directory with what it was, and reports whether what is below it has to be compared too.
func (c *scan) entry(dir *os.File, path, name string, was item) (now item, deeper bool, err error) {
	if now, err = c.item(dir, path, name, was); err != nil {
		return now, false, err
	}
	c.changed(path, was, now)
	// Another one took the place of the one that is known: it may have the same inode, but has no watch.
	other := now.state.IsDir() && was.state.IsDir() && (was.stamp.ino != now.stamp.ino || !c.watch.has(join(path, name)))
	if other {
		c.watch.remove(join(path, name))
	}
	return now, now.state.IsDir() && (c.whole || other || !was.state.IsDir() || c.dirs[join(path, name)] == nil), nil
}

// below compares directories of a directory.
func (c *scan) below(path string, dir *os.File, names []string, depth int) error {
	for _, name := range names {
		child, err := openIn(dir, name)
		if err == nil {
			err = errors.Join(c.dir(join(path, name), child, depth+1), child.Close())
		}
		if err != nil && !isGone(err) && !c.gap(join(path, name), err) {
			return err
		}
	}
	return nil
}

// changed notes a change, if there is one.
func (c *scan) changed(path string, was, now item) {
	if was.linked && was.stamp.ino != now.stamp.ino { // what was done to it by this name had no event where the others are
		c.link(was.stamp.ino)
	}
	if was.state == now.state || was.state.Lost && was.stamp == now.stamp { // which fits in the store now
		return
	}
	at := join(path, cmp.Or(now.name, was.name))
	if c.filled {
		before, ok := c.pending[at]
		if !ok {
			before = was.state
		}
		c.pending[at] = before
	}
	if was.state.IsDir() && !now.state.IsDir() {
		c.goneBelow(at)
	}
}

// link notes that a file with several names may have changed.
func (c *scan) link(ino uint64) {
	if c.whole {
		return
	}
	if c.linked == nil {
		c.linked = make(map[uint64]bool)
	}
	c.linked[ino] = true
}

// gone notes that an entry is gone, and all that was below it.
func (c *scan) gone(path string, was item) { c.changed(path, was, item{}) }

func (c *scan) goneBelow(path string) {
	items := c.dirs[path]
	delete(c.dirs, path)
	c.watch.remove(path)
	c.count -= int64(len(items))
	for _, was := range items {
		c.gone(path, was)
	}
}

// item returns what a name is now. Its content is read only if it may have changed.
func (c *scan) item(dir *os.File, path, name string, was item) (item, error) {
	begin := time.Now()
	st, err := statIn(dir, name)
	if isGone(err) {
		return item{}, nil
	}
	if err != nil {
		c.gap(join(path, name), err)
		return item{}, nil
	}
	now := item{name: name, stamp: stampOf(&st)}
	now.state.Mode = now.stamp.mode
	switch {
	case now.state.IsDir():
		if device(&st) != c.dev {
			c.gap(join(path, name), errors.New("another file system is mounted there"))
			return item{}, nil
		}
		return now, nil
	case !now.state.content():
		return item{}, nil
	}
	same := now.stamp == was.stamp && !was.young && !c.touched[join(path, name)]
	switch {
	case same && !(was.state.Lost && c.whole):
		return was, nil
	case now.stamp == was.stamp && !was.state.Lost && c.filled && c.tooFull(): // what is stored of it is not given up for that
		was.young = true
		return was, nil
	}
	gaps := len(c.gaps)
	err = c.read(dir, path, &now)
	if isGone(err) {
		return item{}, nil
	}
	if same && now.state == was.state {
		c.gaps = c.gaps[:gaps] // that was told before
	}
	now.young = now.young || begin.UnixNano()-max(now.stamp.ctime, now.stamp.mtime) < int64(tick)
	return now, err
}

// read stores the content of a file, or the target of a link.
func (c *scan) read(dir *os.File, path string, now *item) error {
	if now.state.isLink() {
		target, err := linkIn(dir, now.name)
		if err != nil {
			return c.lost(path, now, err)
		}
		now.state.Ref, now.state.Size, err = c.store(strings.NewReader(target), false)
		return stored(err)
	}
	if most := c.options.MaxFile; most > 0 && now.stamp.size > most {
		return c.lost(path, now, fmt.Errorf("it has more than %d bytes", most))
	}
	if c.filled && c.tooFull() { // what changes is still told, and what is old can be forgotten
		c.full = true
		return c.lost(path, now, fmt.Errorf("the store has more than %d bytes", c.options.MaxBytes))
	}
	file, st, err := openFile(dir, now.name)
	if err != nil {
		return c.lost(path, now, err)
	}
	defer file.Close()
	now.stamp = stampOf(&st)
	now.state.Mode = now.stamp.mode
	if now.linked = st.Nlink > 1; now.linked {
		c.link(st.Ino)
	}
	now.state.Secret = c.options.Secret != nil && c.options.Secret(join(path, now.name))
	if now.state.Secret && c.pack.box == nil {
		return c.lost(path, now, errors.New("there is no key to seal it with"))
	}
	in := &limited{in: file, left: c.options.MaxFile, bounded: c.options.MaxFile > 0}
	now.state.Ref, now.state.Size, err = c.store(in, now.state.Secret)
	switch {
	case errors.Is(err, errLong) || in.failed != nil:
		return c.lost(path, now, err)
	case err != nil:
		return stored(err)
	}
	if !c.filled && c.tooFull() {
		return fmt.Errorf("%w: its contents take more than %d bytes", ErrTooLarge, c.options.MaxBytes)
	}
	if err := unix.Fstat(file.fd, &st); err != nil || stampOf(&st) != now.stamp {
		now.young = true // it changes while it is read
	}
	return nil
}

// store stores what a reader has. Most scans find nothing to read, and need no buffer.
func (c *scan) store(in io.Reader, secret bool) (Ref, int64, error) {
	if c.buffer == nil {
		c.buffer = make([]byte, pieceSize)
	}
	return c.pack.store(in, secret, c.buffer)
}

// lost makes an item one whose content is not stored. Another stamp is another content.
func (c *scan) lost(path string, now *item, err error) error {
	if isGone(err) {
		return err
	}
	c.gaps = append(c.gaps, Gap{join(path, now.name), err.Error()})
	now.state.Lost, now.state.Size, now.state.Ref = true, now.stamp.size, now.stamp.ref()
	return nil
}

// errStore is in errors of the store itself, which end a scan.
var errStore = errors.New("store contents")

func stored(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errStore, err)
}

// errLong is the error for a file that grew beyond the limit while it was read.
var errLong = errors.New("it became longer than what is stored of a file")

// limited reads a file, whose errors it keeps, and no more than a number of bytes.
type limited struct {
	in      io.Reader
	left    int64
	bounded bool
	failed  error
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.in.Read(b)
	if l.left -= int64(n); l.bounded && l.left < 0 {
		return n, errLong
	}
	if err != nil && !errors.Is(err, io.EOF) {
		l.failed = err
	}
	return n, err
}
