package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// open opens the segment that holds the entry From, or the last one there is, near that entry. A follower may come before
// the kernel has made the directory, or anything in it.
func (r *Reader) open() error {
	firsts, err := listSegments(r.fsys, r.dir)
	if r.opt.Follow && errors.Is(err, fs.ErrNotExist) {
		return io.EOF
	}
	if err != nil {
		return err
	}
	if len(firsts) == 0 {
		return io.EOF
	}
	// A segment holds the entries from the one in its name to the one before the next name.
	i, found := slices.BinarySearch(firsts, r.opt.From)
	if !found {
		i--
	}
	if i < 0 {
		r.first = 1
		return r.damage(0, fmt.Sprintf("the segments that hold entries 1 to %d are missing", firsts[0]-1))
	}
	f, err := r.fsys.Open(segmentPath(r.dir, firsts[i]))
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	off, err := seekEntry(f, r.opt.From)
	if err != nil {
		return errors.Join(fmt.Errorf("read segment: %w", err), f.Close())
	}
	r.f, r.lines, r.first = f, newLineReader(f, off), firsts[i]
	return nil
}

// advance is called at the end of a segment and returns the first line of the next, or io.EOF where there is none yet.
func (r *Reader) advance() ([]byte, error) {
	r.lines.discard() // an unfinished line may yet be taken back
	next := r.head.Seq + 1
	if !r.known || next == r.first {
		// The segment has no entry yet, and next would be its own name.
		return nil, io.EOF
	}
	f, err := r.fsys.Open(segmentPath(r.dir, next))
	if errors.Is(err, fs.ErrNotExist) {
		return r.atTail()
	}
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	// The old segment was complete before the next was made, but perhaps not yet when it was last read: what looked like
	// half a line then may be none now.
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) && r.lines.rest() > 0 {
		err = r.damage(r.lines.off, unfinished)
	}
	if !errors.Is(err, io.EOF) {
		return line, errors.Join(err, f.Close())
	}
	old := r.f
	r.f, r.lines, r.first, r.tail = f, newLineReader(f, 0), next, false
	if err := old.Close(); err != nil {
		return nil, fmt.Errorf("close segment: %w", err)
	}
	return r.lines.next()
}

// atTail returns io.EOF where the open segment is the last. It looks once a segment: after that, the next one to be made
// is the one that advance tries.
func (r *Reader) atTail() ([]byte, error) {
	if r.tail {
		return nil, io.EOF
	}
	firsts, err := listSegments(r.fsys, r.dir)
	if err != nil {
		return nil, err
	}
	if len(firsts) == 0 || firsts[len(firsts)-1] <= r.next() {
		r.tail = true
		return nil, io.EOF
	}
	// Others follow it by now, so it is complete.
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		return nil, r.damage(r.lines.off, "the segment ends here, but others follow it")
	}
	return line, err
}
