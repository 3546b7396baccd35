package journal

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/promptware-os/pwos/schema/fault"
)

// An anchor replaces the archived segments before it. It consists of a signed line that names their last entry, and a file
// with the state that all entries up to that one produced. The line is decisive: the segments are needed until it exists,
// and not needed afterwards.
const (
	anchorName  = "anchor"
	stateSuffix = ".state"
	baseName    = "base" // in an archive: the anchor that its first segment follows, without the state
)

// An Anchor is the line of an anchor.
type Anchor struct {
	Head // the last archived entry

	Tick    int64  // the kernel's tick at that entry
	Time    int64  // when the anchor was made, Unix milliseconds
	Form    string // format of the state; another one cannot be read
	State   Hash   // SHA-256 of the state's file
	Bytes   int64  // its length
	Archive string // the directory that the segments were moved to
	seal
}

func (a *Anchor) text() []byte {
	return fmt.Appendf(nil, "pwos-anchor@v1\n%d\n%s\n%d\n%d\n%q\n%s\n%d\n%q\n", a.Seq, a.Hash, a.Tick, a.Time, a.Form, a.State, a.Bytes, a.Archive)
}

func (a *Anchor) appendLine(dst []byte) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, a.Seq, 10)
	dst = append(dst, `,"hash":"`...)
	dst = appendHash(dst, &a.Hash)
	dst = append(dst, `","tick":`...)
	dst = strconv.AppendInt(dst, a.Tick, 10)
	dst = append(dst, `,"time":`...)
	dst = strconv.AppendInt(dst, a.Time, 10)
	dst = append(dst, `,"form":`...)
	dst = appendString(dst, a.Form)
	dst = append(dst, `,"state":"`...)
	dst = appendHash(dst, &a.State)
	dst = append(dst, `","bytes":`...)
	dst = strconv.AppendInt(dst, a.Bytes, 10)
	dst = append(dst, `,"archive":`...)
	dst = appendString(dst, a.Archive)
	return appendSeal(dst, &a.seal)
}

var errAnchor = errors.New("the file is not an anchor")

func parseAnchor(text []byte) (*Anchor, error) {
	line, ok := bytes.CutSuffix(text, []byte("\n"))
	c := cursor{b: line}
	a := new(Anchor)
	c.word(`{"seq":`)
	a.Seq = c.uint()
	c.word(`,"hash":"`)
	c.hash(&a.Hash)
	c.word(`","tick":`)
	a.Tick = c.int()
	c.word(`,"time":`)
	a.Time = c.int()
	c.word(`,"form":`)
	a.Form = c.text("")
	c.word(`,"state":"`)
	c.hash(&a.State)
	c.word(`","bytes":`)
	a.Bytes = c.int()
	c.word(`,"archive":`)
	a.Archive = c.text("")
	c.seal(&a.seal)
	if !ok || c.bad || a.Seq == 0 || string(a.appendLine(nil)) != string(line) {
		return nil, errAnchor
	}
	return a, nil
}

// ReadAnchor returns the anchor of the journal in dir, or nil if nothing was archived. A nil fsys means OSFS. If the
// signature does not match the key that the anchor names, the error is a *DamageError.
func ReadAnchor(fsys FS, dir string) (*Anchor, error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	return readAnchorFile(fsys, dir, anchorName)
}

func readAnchorFile(fsys FS, dir, name string) (*Anchor, error) {
	text, err := readSmall(fsys, dir, name)
	if text == nil || err != nil {
		return nil, err
	}
	a, err := parseAnchor(text)
	if err == nil {
		err = a.verify(a.text())
	}
	if err != nil {
		return nil, anchorDamage(dir, name, err)
	}
	return a, nil
}

func anchorDamage(dir, name string, err error) *DamageError {
	return &DamageError{File: filepath.Join(dir, name), Reason: err.Error(), Remedy: remedyAnchor}
}

// StateName returns the name of the state's file, which is in the same directory as the anchor.
func (a *Anchor) StateName() string { return fmt.Sprintf("%0*d%s", segmentDigits, a.Seq, stateSuffix) }

// LoadState checks the state's file, and then calls restore with its chunks in the order in which they were written, each
// with the name of the part that it belongs to. A chunk is valid until restore returns.
func (a *Anchor) LoadState(ctx context.Context, fsys FS, dir string, restore func(part string, chunk []byte) error) (err error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	f, err := fsys.Open(filepath.Join(dir, a.StateName()))
	if err != nil {
		return fmt.Errorf("read state of the anchor: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := a.checkState(ctx, f); err != nil {
		return stateFault(dir, a, err)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, a.Bytes), readSize)
	for ctx.Err() == nil {
		part, err := readText(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var chunk []byte
		if err == nil {
			chunk, err = readText(in)
		}
		if err != nil {
			return stateFault(dir, a, fmt.Errorf("it ends within a chunk: %w", err))
		}
		if err := restore(string(part), chunk); err != nil {
			return err
		}
	}
	return ctx.Err()
}

var errState = errors.New("it is not the state that the anchor names")

func stateFault(dir string, a *Anchor, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return anchorDamage(dir, a.StateName(), err)
}

// checkState compares the file with its size and hash in the anchor.
func (a *Anchor) checkState(ctx context.Context, f File) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size != a.Bytes {
		return fmt.Errorf("%w: it has %d bytes instead of %d", errState, size, a.Bytes)
	}
	sum, buf := sha256.New(), make([]byte, readSize)
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-off)], off)
		if n == 0 && err != nil {
			return err
		}
		sum.Write(buf[:n])
		off += int64(n)
	}
	if Hash(sum.Sum(nil)) != a.State {
		return errState
	}
	return nil
}

// maxPart bounds the length of a chunk in bytes. Chunks have at most some MB.
const maxPart = 1 << 30

func readText(in *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	if n > maxPart {
		return nil, errState
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return text, nil
}

// writeState writes the state's file durably, and sets its size and hash in a. write is called once with a function that
// appends a chunk of a part.
func (a *Anchor) writeState(fsys FS, dir string, write func(put func(part string, chunk []byte) error) error) error {
	return replace(fsys, dir, a.StateName(), func(f File) error {
		sum, at := sha256.New(), int64(0)
		out := bufio.NewWriterSize(io.MultiWriter(io.NewOffsetWriter(f, 0), sum), readSize)
		err := write(func(part string, chunk []byte) error {
			for _, text := range [][]byte{[]byte(part), chunk} {
				n, _ := out.Write(binary.AppendUvarint(nil, uint64(len(text)))) // a bufio.Writer keeps its first error
				m, err := out.Write(text)
				if at += int64(n + m); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = out.Flush()
		}
		a.State, a.Bytes = Hash(sum.Sum(nil)), at
		return err
	})
}

// WriteAnchor writes the state of a and then a itself, signed. When it returns, the segments up to a are not needed any
// more; if it fails, they are. It removes the state of the previous anchor.
func WriteAnchor(fsys FS, dir string, a *Anchor, signer Signer, write func(put func(part string, chunk []byte) error) error) error {
	if fsys == nil {
		fsys = OSFS{}
	}
	before, err := ReadAnchor(fsys, dir)
	if err != nil {
		return err
	}
	if err := a.writeState(fsys, dir, write); err != nil {
		return err
	}
	if a.seal, err = sealed(signer, "", a.text()); err != nil {
		return fmt.Errorf("sign anchor: %w", err)
	}
	if err := replace(fsys, dir, anchorName, writeAll(append(a.appendLine(nil), '\n'))); err != nil {
		return err
	}
	if before != nil && before.Seq != a.Seq {
		return removeIfThere(fsys, filepath.Join(dir, before.StateName()))
	}
	return nil
}

// An ArchivedError says that an entry has been archived.
type ArchivedError struct {
	Seq    uint64 // the entry that was asked for
	Anchor *Anchor
}

func (e *ArchivedError) Error() string {
	return fmt.Sprintf("entry %d is archived: entries 1 to %d are in %s", e.Seq, e.Anchor.Seq, e.Anchor.Archive)
}

// Unwrap returns the error for clients, which does not contain the path of the archive.
func (e *ArchivedError) Unwrap() error {
	return fault.JournalArchived.New("entry %d is archived: entries 1 to %d are not in the journal any more", e.Seq, e.Anchor.Seq).
		WithFix("the operator knows where the archive is").With("seq", strconv.FormatUint(e.Seq, 10))
}

// TellOperator returns err with the path of the archive if err is an ArchivedError. Only operators may see it.
func TellOperator(err error) error {
	gone, archived := errors.AsType[*ArchivedError](err)
	if !archived {
		return err
	}
	return fault.JournalArchived.New("%s", gone.Error()).
		With("seq", strconv.FormatUint(gone.Seq, 10)).With("directory", gone.Anchor.Archive).Wrap(err)
}
