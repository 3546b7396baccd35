package index

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/promptware-os/pwos/journal"
)

// A snapshot file is a header, chunks, each after its length as a varint, and the SHA-256 of all of that. The first
// chunk is the title.

// header describes a snapshot.
type header struct {
	At   journal.Head // the last entry that the state contains; the zero Head: none
	Tick int64        // the kernel's tick at that entry
}

// title is the first chunk of a snapshot. A change of the file's format needs another number.
func (x *Index) title(name string) string {
	return fmt.Sprintf("pwos snapshot 1 of %q, form %q", name, x.opt.Form)
}

func (x *Index) snapshotPath(name string) string {
	return filepath.Join(x.dir, url.PathEscape(name)+".snapshot")
}

// temporary is the suffix of incomplete files.
const temporary = ".tmp"

// removeTemporary removes the remains of a Save that a crash interrupted.
func (x *Index) removeTemporary() error {
	entries, err := os.ReadDir(x.dir)
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == temporary {
			err = errors.Join(err, os.Remove(filepath.Join(x.dir, entry.Name())))
		}
	}
	return err
}

// Save replaces the snapshot name by one of the state as of the entry at. It calls write once, on this goroutine; write
// calls put for each chunk, which put copies. A chunk may be empty, and there may be no chunks.
//
// Until Save has succeeded, and after an error or a crash, readers get the old snapshot.
func (x *Index) Save(ctx context.Context, name string, at journal.Head, tick int64, write func(put func(chunk []byte) error) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	err := ErrClosed
	if !x.closed {
		err = x.saveSnapshot(ctx, name, header{at, tick}, write)
	}
	if err != nil {
		return fmt.Errorf("save snapshot %s: %w", name, err)
	}
	return nil
}

func (x *Index) saveSnapshot(ctx context.Context, name string, of header, write func(put func(chunk []byte) error) error) (err error) {
	file, err := os.CreateTemp(x.dir, "*"+temporary)
	if err != nil {
		return err
	}
	saved := false
	defer func() { // even if write panics
		if !saved {
			err = errors.Join(err, file.Close(), os.Remove(file.Name()))
		}
	}()
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(file, sum), 256<<10) // a bufio.Writer keeps its first error
	put := func(chunk []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, _ = out.Write(binary.AppendUvarint(out.AvailableBuffer(), uint64(len(chunk))))
		_, err := out.Write(chunk)
		return err
	}
	if err := binary.Write(out, binary.BigEndian, of); err != nil {
		return err
	}
	if err := put([]byte(x.title(name))); err != nil {
		return err
	}
	if err := write(put); err != nil {
		return err
	}
	if err := errors.Join(ctx.Err(), out.Flush()); err != nil {
		return err
	}
	if _, err := file.Write(sum.Sum(nil)); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), x.snapshotPath(name)); err != nil {
		return err
	}
	saved = true
	return file.Close()
}

// Load calls restore with the chunks of a snapshot, in order and as they were saved; a chunk is valid until restore
// returns. It returns the entry and the tick of the state. It returns ErrNoSnapshot, ErrDamaged, ErrForeign, or the
// first error of restore, after which the caller has to reset its state.
func (x *Index) Load(ctx context.Context, name string, restore func(chunk []byte) error) (at journal.Head, tick int64, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var of header
	err = ErrClosed
	if !x.closed {
		of, err = x.loadSnapshot(ctx, name, restore)
	}
	if err != nil {
		return journal.Head{}, 0, fmt.Errorf("load snapshot %s: %w", name, err)
	}
	return of.At, of.Tick, nil
}

func (x *Index) loadSnapshot(ctx context.Context, name string, restore func(chunk []byte) error) (of header, err error) {
	file, err := os.Open(x.snapshotPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return of, ErrNoSnapshot
	}
	if err != nil {
		return of, err
	}
	defer file.Close() // read only
	size, err := verify(file)
	if err != nil {
		return of, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(file, 0, size), 256<<10)
	if err := binary.Read(in, binary.BigEndian, &of); err != nil {
		return of, err
	}
	title, err := readChunk(in, nil)
	if err != nil {
		return of, err
	}
	if string(title) != x.title(name) {
		return of, ErrNoSnapshot
	}
	if err := x.check(of.At); err != nil {
		return of, err
	}
	for chunk := []byte(nil); ; {
		if err := ctx.Err(); err != nil {
			return of, err
		}
		if chunk, err = readChunk(in, chunk); errors.Is(err, io.EOF) {
			return of, nil
		} else if err != nil {
			return of, err
		}
		if err := restore(chunk); err != nil {
			return of, err
		}
	}
}

// Position returns the seq of a snapshot's entry without reading the state; 0 if there is no snapshot.
func (x *Index) Position(name string) uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.closed {
		return 0
	}
	file, err := os.Open(x.snapshotPath(name))
	if err != nil {
		return 0
	}
	defer file.Close() // read only
	var of header
	if err := binary.Read(file, binary.BigEndian, &of); err != nil {
		return 0
	}
	return of.At.Seq
}

// verify compares a file with its checksum, and returns the length of the content before the
// checksum.
func verify(file *os.File) (size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	size = info.Size() - sha256.Size
	if size < int64(binary.Size(header{})) {
		return 0, fmt.Errorf("%w: it has %d bytes", ErrDamaged, info.Size())
	}
	sum := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.NewSectionReader(file, 0, size), make([]byte, 256<<10)); err != nil {
		return 0, err
	}
	var saved [sha256.Size]byte
	if _, err := file.ReadAt(saved[:], size); err != nil {
		return 0, err
	}
	if saved != [sha256.Size]byte(sum.Sum(nil)) {
		return 0, fmt.Errorf("%w: its checksum does not match", ErrDamaged)
	}
	return size, nil
}

// readChunk reads the next chunk into the previous chunk's memory. It returns io.EOF at the end.
func readChunk(in *bufio.Reader, chunk []byte) ([]byte, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	chunk = slices.Grow(chunk[:0], int(n))[:n]
	if _, err := io.ReadFull(in, chunk); err != nil {
		return nil, fmt.Errorf("%w: its last chunk is short: %w", ErrDamaged, err)
	}
	return chunk, nil
}
