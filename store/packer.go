package store

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxChunk is the longest chunk of a snapshot in bytes.
const MaxChunk = 256 << 20

// partBytes is how long a part is in bytes, but for one that holds a single longer chunk: long enough that a row costs
// little beside its bytes, short enough to be held in memory without a thought.
const partBytes = 256 << 10

var errLongChunk = errors.New("chunk is too long")

// A packer gathers chunks into parts: each chunk with its length before it as a varint, whole chunks only.
type packer struct {
	emit   func(part []byte) error // the part is valid until emit returns
	buf    []byte
	chunks int64
	bytes  int64
	err    error // what emit said first: nothing is put after it, whatever the caller does about it
}

func (p *packer) put(chunk []byte) error {
	if p.err == nil && len(chunk) > MaxChunk {
		p.err = fmt.Errorf("%w: %d bytes, at most %d", errLongChunk, len(chunk), MaxChunk)
	}
	if p.err == nil && len(p.buf)+binary.MaxVarintLen64+len(chunk) > partBytes {
		p.flush()
	}
	if p.err != nil {
		return p.err
	}
	if p.buf == nil {
		p.buf = make([]byte, 0, max(partBytes, binary.MaxVarintLen64+len(chunk)))
	}
	p.buf = binary.AppendUvarint(p.buf, uint64(len(chunk)))
	p.buf = append(p.buf, chunk...)
	p.chunks++
	p.bytes += int64(len(chunk))
	return nil
}

// finish emits the last part, and returns the error that put returned, were it ignored.
func (p *packer) finish() error {
	p.flush()
	return p.err
}

func (p *packer) flush() {
	if p.err != nil || len(p.buf) == 0 {
		return
	}
	p.err = p.emit(p.buf)
	p.buf = p.buf[:0]
	if cap(p.buf) > partBytes {
		p.buf = nil // one long chunk is no reason to keep its memory
	}
}

// unpack calls each with the chunks of a part, which alias it, until one returns an error.
func unpack(part []byte, each func(chunk []byte) error) error {
	for len(part) > 0 {
		n, w := binary.Uvarint(part)
		if w <= 0 || n > uint64(len(part)-w) {
			return fmt.Errorf("%w: chunk is longer than its part", ErrDamaged)
		}
		end := w + int(n)
		if err := each(part[w:end:end]); err != nil {
			return err
		}
		part = part[end:]
	}
	return nil
}
