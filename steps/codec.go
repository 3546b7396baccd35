package steps

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errTorn    = errors.New("incomplete record")
)

// encoder appends values in a form that decoder reads back.
type encoder struct{ b []byte }

func (e *encoder) number(n uint64)  { e.b = binary.AppendUvarint(e.b, n) }
func (e *encoder) signed(n int64)   { e.b = binary.AppendVarint(e.b, n) }
func (e *encoder) text(s string)    { e.number(uint64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) time(t time.Time) { e.signed(t.UnixNano()) }

func (e *encoder) flags(list ...bool) {
	var n uint64
	for i, set := range list {
		if set {
			n |= 1 << i
		}
	}
	e.number(n)
}

func (e *encoder) state(s State) {
	e.number(uint64(s.Mode))
	if !s.Exists() {
		return
	}
	e.flags(s.Secret, s.Lost)
	if s.content() {
		e.signed(s.Size)
		e.b = append(e.b, s.Ref[:]...)
	}
}

// decoder reads what encoder has written. After the end, or a value that cannot be, all values are zero and bad is set.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) text() string    { return string(d.bytes(d.number())) }
func (d *decoder) time() time.Time { return time.Unix(0, d.signed()) }
func (d *decoder) flag(n uint64, i int) bool {
	return n&(1<<i) != 0
}

// count returns a number of values that follow, each of at least one byte.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) state() (s State) {
	s.Mode = uint32(d.number())
	if !s.Exists() {
		return s
	}
	flags := d.number()
	s.Secret, s.Lost = d.flag(flags, 0), d.flag(flags, 1)
	if s.content() {
		s.Size = d.signed()
		copy(s.Ref[:], d.bytes(uint64(len(s.Ref))))
	}
	return s
}

// seal puts a length and a checksum before a record.
func seal(record []byte) []byte {
	out := make([]byte, 8, 8+len(record))
	binary.LittleEndian.PutUint32(out, uint32(len(record)))
	binary.LittleEndian.PutUint32(out[4:], crc32.Checksum(record, castagnoli))
	return append(out, record...)
}

// unseal returns the first record of b, and what follows it.
func unseal(b []byte) (record, rest []byte, err error) {
	if len(b) < 8 {
		return nil, nil, errTorn
	}
	size, sum := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if size == 0 || uint64(size) > uint64(len(b)-8) { // NULs, where a file has grown before its content was written, are no record
		return nil, nil, errTorn
	}
	record = b[8 : 8+size]
	if crc32.Checksum(record, castagnoli) != sum {
		return nil, nil, errTorn
	}
	return record, b[8+size:], nil
}
