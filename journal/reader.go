package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

const defaultPoll = 100 * time.Millisecond

// ReaderOptions configure a Reader.
type ReaderOptions struct {
	// From is the first entry to return; 0 means the first in the journal. The error for an archived one is an
	// *ArchivedError.
	From uint64

	// Follow makes Next wait for more at the end, instead of returning io.EOF.
	Follow bool

	// Notify, if not nil, wakes a waiting Next. A capacity of one and a non-blocking sender are enough.
	Notify <-chan struct{}

	// Poll is how often a waiting Next checks for new entries; 0 means every 100 ms.
	Poll time.Duration

	// Limit, if not nil, returns the last entry that may be returned. (*Log).Synced hides entries that a crash could undo,
	// (*Log).Written those of a write that may fail. Without it a reader returns every whole line.
	Limit func() uint64

	// Lines makes Next set only Line of a Record, its place in the chain and in the files, and Redacted. What is in the line is
	// not checked, except by the prev of the next one.
	Lines bool

	// Edit, if not nil, may replace Request and Outcome of an entry before Next returns it, to try a Rewrite. Its error
	// ends Next.
	Edit func(*Record) error
}

// A Reader reads the entries of a journal in order, also while a process writes it. Its memory depends only on the longest
// line. It checks the chain, so it returns what was appended, except for a change of the very last entry. It is not safe
// for concurrent use.
type Reader struct {
	fsys FS
	dir  string
	opt  ReaderOptions

	f      File
	edited redactions
	lines  *lineReader
	first  uint64 // of the open segment
	tail   bool   // whether it was found to be the last one
	head   Head   // the last entry read; its hash is unknown before the first
	known  bool   // whether the hash of head is known
	limit  uint64 // result of Limit before the buffered lines were read
	rec    Record
}

// NewReader returns a Reader of the journal in dir; a nil fsys means OSFS. The directory need not exist yet.
func NewReader(fsys FS, dir string, o ReaderOptions) *Reader {
	if fsys == nil {
		fsys = OSFS{}
	}
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	return &Reader{fsys: fsys, dir: dir, opt: o}
}

// Next returns the next entry, valid until the next call. It returns io.EOF at the end of the journal or at Limit, unless
// Follow is set; a later call may return more. It returns a *DamageError if the chain is broken, and the cause of ctx when
// that is done.
func (r *Reader) Next(ctx context.Context) (*Record, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rec, err := r.read()
		if err == nil {
			if rec.Seq < r.opt.From {
				continue
			}
			if r.opt.Edit != nil {
				if err := r.opt.Edit(rec); err != nil {
					return nil, err
				}
			}
			return rec, nil
		}
		if !errors.Is(err, io.EOF) || !r.opt.Follow {
			return nil, err
		}
		if err := r.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Close closes the open segment.
func (r *Reader) Close() error {
	if r.f == nil {
		return nil
	}
	f := r.f
	r.f = nil
	return f.Close()
}

// read returns the next entry of the journal, or io.EOF.
func (r *Reader) read() (*Record, error) {
	if err := r.allow(); err != nil {
		return nil, err
	}
	if r.f == nil {
		if err := r.open(); err != nil {
			return nil, err
		}
	}
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		line, err = r.advance()
	}
	if errors.Is(err, errLongLine) {
		err = r.damage(r.lines.off, err.Error())
	}
	if err != nil {
		return nil, err
	}
	return r.accept(line)
}

// nextSeq returns the entry that the next line should have.
func (r *Reader) nextSeq() uint64 {
	if !r.known {
		return max(r.opt.From, 1)
	}
	return r.head.Seq + 1
}

// allow calls Limit before anything is read. Lines that were buffered under the old limit are read again under the new one:
// they may be from a write that failed and was taken back.
func (r *Reader) allow() error {
	if r.opt.Limit == nil || r.nextSeq() <= r.limit {
		return nil
	}
	if r.limit = r.opt.Limit(); r.nextSeq() > r.limit {
		return io.EOF
	}
	if r.lines != nil {
		r.lines.discard()
	}
	return nil
}

// accept checks a line against the previous one.
func (r *Reader) accept(line []byte) (*Record, error) {
	start := r.lines.off - int64(len(line)) - 1
	parse := ParseLine
	if r.opt.Lines {
		parse = parsePlace
	}
	if err := parse(line, &r.rec); err != nil {
		return nil, r.damage(start, err.Error())
	}
	if !r.known {
		// Reading starts here, so this line's prev is accepted as it is, except for the first entry of all.
		r.head = Head{Seq: r.rec.Seq - 1, Hash: r.rec.Prev}
		if start == 0 {
			r.head.Seq = r.first - 1
		}
		if r.head.Seq == 0 {
			r.head = Head{}
		}
	}
	reason := chainFault(r.head, &r.rec)
	if reason != "" && r.known && r.rec.Seq == r.head.Seq+1 {
		// The previous line was rewritten since its redactions were read.
		if err := r.readRedactions(); err != nil {
			return nil, err
		}
		r.head.Hash, _ = r.edited.chained(r.head.Seq, r.head.Hash)
		reason = chainFault(r.head, &r.rec)
	}
	if reason != "" {
		return nil, r.damage(start, reason)
	}
	r.known = true
	var edit *Redaction
	r.rec.Hash, edit = r.edited.chained(r.rec.Seq, hashLine(line))
	r.rec.Redacted = edit != nil
	r.rec.Segment, r.rec.Offset = r.first, start
	r.head = Head{Seq: r.rec.Seq, Hash: r.rec.Hash}
	return &r.rec, nil
}

func (r *Reader) damage(off int64, reason string) *DamageError {
	return &DamageError{File: segmentPath(r.dir, r.first), Offset: off, Seq: r.nextSeq(), Reason: reason}
}

func (r *Reader) wait(ctx context.Context) error {
	t := time.NewTimer(r.opt.Poll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.opt.Notify:
		return nil
	case <-t.C:
		return nil
	}
}

// open opens the segment with the entry From, or the last segment, near that entry. A follower may start before the kernel
// has created the directory, or anything in it.
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
	if err := r.readRedactions(); err != nil {
		return err
	}
	if r.opt.From == 0 {
		if r.opt.From, err = r.begin(firsts[0]); err != nil {
			return err
		}
	}
	// A segment holds the entries from the one in its name to the one before the next name.
	i, found := slices.BinarySearch(firsts, r.opt.From)
	if !found {
		i--
	}
	if i < 0 {
		if anchor, err := ReadAnchor(r.fsys, r.dir); err != nil {
			return err
		} else if anchor != nil && anchor.Seq >= r.opt.From {
			return &ArchivedError{Seq: r.opt.From, Anchor: anchor}
		}
		r.first = 1
		return r.damage(0, fmt.Sprintf("the segments that hold entries 1 to %d are missing", firsts[0]-1))
	}
	f, err := r.fsys.Open(segmentPath(r.dir, firsts[i]))
	if errors.Is(err, fs.ErrNotExist) { // it was archived after the names were read
		if anchor, failed := ReadAnchor(r.fsys, r.dir); failed == nil && anchor != nil && anchor.Seq >= r.opt.From {
			return &ArchivedError{Seq: r.opt.From, Anchor: anchor}
		}
	}
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	off, err := seekEntry(f, r.opt.From)
	if err != nil {
		return errors.Join(fmt.Errorf("read segment: %w", err), f.Close())
	}
	r.f, r.lines, r.first = f, r.newLines(f, off), firsts[i]
	return nil
}

// begin returns the first entry to read from a segment.
func (r *Reader) begin(first uint64) (uint64, error) {
	if first == 1 {
		return 1, nil
	}
	anchor, err := ReadAnchor(r.fsys, r.dir)
	if anchor == nil {
		return 1, err
	}
	return anchor.Seq + 1, nil
}

func (r *Reader) readRedactions() (err error) {
	r.edited, _, err = loadRedactions(r.fsys, r.dir)
	return err
}

// advance is called at the end of a segment. It returns the first line of the next segment, or io.EOF if there is none yet.
func (r *Reader) advance() ([]byte, error) {
	r.lines.discard() // an unfinished line may be taken back
	next := r.head.Seq + 1
	if !r.known || next == r.first {
		// The segment has no entry yet, and the next segment would have its name.
		return nil, io.EOF
	}
	f, err := r.fsys.Open(segmentPath(r.dir, next))
	if errors.Is(err, fs.ErrNotExist) {
		return r.atTail()
	}
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	// The old segment was complete before the next was created, but maybe not when it was last read: half a line then may
	// be a whole one now.
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) && r.lines.rest() > 0 {
		err = r.damage(r.lines.off, unfinished)
	}
	if !errors.Is(err, io.EOF) {
		return line, errors.Join(err, f.Close())
	}
	old := r.f
	r.f, r.lines, r.first, r.tail = f, r.newLines(f, 0), next, false
	if err := old.Close(); err != nil {
		return nil, fmt.Errorf("close segment: %w", err)
	}
	return r.lines.next()
}

// atTail returns io.EOF if the open segment is the last one. It lists the directory once a segment; after that, advance
// tries the name of the next one.
func (r *Reader) atTail() ([]byte, error) {
	if r.tail {
		return nil, io.EOF
	}
	firsts, err := listSegments(r.fsys, r.dir)
	if err != nil {
		return nil, err
	}
	if len(firsts) == 0 || firsts[len(firsts)-1] <= r.nextSeq() {
		r.tail = true
		return nil, io.EOF
	}
	// Other segments follow it, so it is complete.
	line, err := r.lines.next()
	if errors.Is(err, io.EOF) {
		if anchor, err := ReadAnchor(r.fsys, r.dir); err == nil && anchor != nil && anchor.Seq >= r.nextSeq() {
			return nil, &ArchivedError{Seq: r.nextSeq(), Anchor: anchor} // after this segment was opened
		}
		return nil, r.damage(r.lines.off, "the segment ends here, but others follow it")
	}
	return line, err
}

// A reader starts with firstRead bytes, enough for the first line or two, and grows to readSize when it reads on.
const (
	firstRead = 4 << 10
	readSize  = 256 << 10
)

// errLongLine says that no line ends within MaxLine bytes.
var errLongLine = errors.New("line is longer than an entry may be")

// newLines returns a lineReader for a segment. A reader that follows starts with its largest buffer, so its memory does not
// depend on how far behind it has been.
func (r *Reader) newLines(f File, off int64) *lineReader {
	lines := newLineReader(f, off)
	if r.opt.Follow {
		lines.buf = make([]byte, readSize)
	}
	return lines
}

// lineReader splits a file into lines. Its memory depends only on the longest line. It can continue after io.EOF if the
// file has grown.
type lineReader struct {
	f    File
	buf  []byte
	r, w int   // buf[r:w] is read and not yet returned
	off  int64 // offset in the file of buf[r]
	line int64 // lines returned
	full bool  // the last read filled the whole buffer
}

func newLineReader(f File, off int64) *lineReader { return &lineReader{f: f, off: off} }

// next returns the next line without its '
// ', valid until the next call. It returns io.EOF if no whole line follows; rest then returns the length of the incomplete
// one. With errLongLine, after which there is no next line, it returns at least the first MaxLine bytes.
func (lr *lineReader) next() ([]byte, error) {
	for scanned := 0; ; {
		if n := bytes.IndexByte(lr.buf[lr.r+scanned:lr.w], '\n'); n >= 0 {
			line := lr.buf[lr.r : lr.r+scanned+n]
			lr.r += len(line) + 1
			lr.off += int64(len(line)) + 1
			lr.line++
			return line, nil
		}
		scanned = lr.w - lr.r
		if scanned > MaxLine {
			lr.line++
			return lr.buf[lr.r:lr.w], errLongLine
		}
		if err := lr.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads once, at least one byte, after the buffered ones.
func (lr *lineReader) fill() error {
	if lr.r > 0 {
		lr.w = copy(lr.buf, lr.buf[lr.r:lr.w])
		lr.r = 0
	}
	if lr.w == len(lr.buf) || lr.full && len(lr.buf) < readSize {
		lr.buf = append(lr.buf, make([]byte, max(firstRead, 3*len(lr.buf)))...)
	}
	n, err := lr.f.ReadAt(lr.buf[lr.w:], lr.off+int64(lr.w))
	lr.w += n
	lr.full = lr.w == len(lr.buf)
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// rest returns the number of bytes after the last line end, after next has returned io.EOF.
func (lr *lineReader) rest() int64 { return int64(lr.w - lr.r) }

// peek returns the bytes that rest counts, valid until the next call of next.
func (lr *lineReader) peek() []byte { return lr.buf[lr.r:lr.w] }

// discard drops the buffered bytes, so the next line is read from the file again.
func (lr *lineReader) discard() { lr.w = lr.r }

// lastLineStart finds the start of the last line in buf; ok is false if it is not in buf. whole says that buf begins at the
// start of the file. If buf does not end with a line end, the last line is empty.
func lastLineStart(buf []byte, whole bool) (start int, ok bool) {
	n := len(buf)
	if n == 0 || buf[n-1] != '\n' {
		return n, true
	}
	start = bytes.LastIndexByte(buf[:n-1], '\n') + 1
	return start, start > 0 || whole
}
