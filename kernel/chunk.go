package kernel

import (
	"crypto/sha256"
	"encoding/binary"
)

// AppendText appends a text as [ChunkReader] reads it.
func AppendText(chunk []byte, text string) []byte {
	return append(binary.AppendUvarint(chunk, uint64(len(text))), text...)
}

// ChunkReader reads a chunk from its beginning. After the first error it is Bad, and returns zero values.
type ChunkReader struct {
	Rest []byte
	Bad  bool
}

func (r *ChunkReader) Text() string {
	length := r.Unsigned()
	if r.Bad || length > uint64(len(r.Rest)) {
		r.Bad = true
		return ""
	}
	text := string(r.Rest[:length])
	r.Rest = r.Rest[length:]
	return text
}

func (r *ChunkReader) Number() int64 {
	n, size := binary.Varint(r.Rest)
	if r.Bad || size <= 0 {
		r.Bad = true
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

func (r *ChunkReader) Unsigned() uint64 {
	n, size := binary.Uvarint(r.Rest)
	if r.Bad || size <= 0 {
		r.Bad = true
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

func (r *ChunkReader) Digest() (sum [sha256.Size]byte) {
	if r.Bad || len(r.Rest) < len(sum) {
		r.Bad = true
		return sum
	}
	r.Rest = r.Rest[copy(sum[:], r.Rest):]
	return sum
}
