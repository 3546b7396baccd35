package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// AppendText appends a text as [ChunkReader] reads it.
func AppendText(chunk []byte, text string) []byte {
	return append(binary.AppendUvarint(chunk, uint64(len(text))), text...)
}

// ChunkWriter cuts a state that is too large for [Records] into chunks. After the first error nothing is written.
type ChunkWriter struct {
	Write func(chunk []byte) error
	Chunk []byte // what is not written yet
	Err   error  // of Write
}

// Cut writes the chunk if it is long enough, and reports whether there was no error. Call it between two entries.
func (w *ChunkWriter) Cut() bool {
	const size = 1 << 20
	return len(w.Chunk) < size && w.Err == nil || w.Flush() == nil
}

// Flush passes the chunk on to the writer, which may keep it.
func (w *ChunkWriter) Flush() error {
	if len(w.Chunk) > 0 && w.Err == nil {
		if err := w.Write(w.Chunk); err != nil {
			w.Err = fmt.Errorf("write snapshot: %w", err)
		}
		w.Chunk = nil
	}
	return w.Err
}

// ChunkReader reads a chunk from its beginning. After the first error it is Bad, and returns zero values.
type ChunkReader struct {
	Rest []byte
	Bad  bool
}

// Take returns the next n bytes, which alias the chunk.
func (r *ChunkReader) Take(n uint64) []byte {
	if r.Bad = r.Bad || n > uint64(len(r.Rest)); r.Bad {
		return nil
	}
	taken := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return taken
}

// Bytes returns the next text, which aliases the chunk.
func (r *ChunkReader) Bytes() []byte { return r.Take(r.Unsigned()) }

func (r *ChunkReader) Text() string { return string(r.Bytes()) }

func (r *ChunkReader) Number() int64 {
	n, size := binary.Varint(r.Rest)
	if r.Bad = r.Bad || size <= 0; r.Bad {
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

func (r *ChunkReader) Unsigned() uint64 {
	n, size := binary.Uvarint(r.Rest)
	if r.Bad = r.Bad || size <= 0; r.Bad {
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

func (r *ChunkReader) Digest() (sum [sha256.Size]byte) {
	copy(sum[:], r.Take(sha256.Size))
	return sum
}
