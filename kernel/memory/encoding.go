package memory

import "encoding/binary"

// appendText appends a text with its length in front.
func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// chunkReader reads a chunk from its beginning. What does not fit sets bad, and reads as empty from there on.
type chunkReader struct {
	rest []byte
	bad  bool
}

// number returns the next unsigned varint.
func (r *chunkReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if r.bad = r.bad || size <= 0; r.bad {
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// text returns the next text; it aliases the chunk.
func (r *chunkReader) text() []byte {
	n := r.number()
	if r.bad = r.bad || n > uint64(len(r.rest)); r.bad {
		return nil
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}
