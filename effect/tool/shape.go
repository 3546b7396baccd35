package tool

import "encoding/binary"

// Limits of counts in a module. The engine allocates memory for a count before it reads the elements: a count of five bytes can
// allocate hundreds of gigabytes, which ends the process without a recoverable panic.
const (
	maxItems  = 100_000 // elements of one vector
	maxTable  = 1 << 20 // initial entries of all tables together
	maxLocals = 50_000  // of one function
)

// checkShape returns a module without its custom sections, such as names and debugging information, which the engine would parse.
// It returns a fault if a count in the module exceeds the data that follows or a limit. It checks only the binary format;
// the engine checks the rest.
func checkShape(module []byte) ([]byte, error) {
	const header = 8
	if len(module) < header {
		return nil, badModule("it ends in its header")
	}
	out := append(make([]byte, 0, len(module)), module[:header]...)
	s := shape{reader: reader{rest: module[header:]}}
	for len(s.rest) > 0 {
		whole := s.rest
		id := s.byte()
		content := reader{rest: s.take(s.number())}
		if s.bad {
			return nil, badModule("a section is longer than the module")
		}
		if id == 0 {
			continue
		}
		inner := shape{reader: content, entries: s.entries}
		if inner.section(id); inner.bad || len(inner.rest) > 0 {
			return nil, badModule("section %d declares what it does not hold, or too much", id)
		}
		s.entries = inner.entries
		out = append(out, whole[:len(whole)-len(s.rest)]...)
	}
	return out, nil
}

// shape parses the sections of a module.
type shape struct {
	reader
	entries uint64 // total number of table entries
}

func (s *shape) section(id byte) {
	switch id {
	case 1: // types
		s.vector(func() { s.want(0x60); s.vector(s.valueType); s.vector(s.valueType) })
	case 2: // imports, which can only be functions
		s.vector(func() { s.bytes(); s.bytes(); s.want(0); s.number() })
	case 3: // functions
		s.vector(func() { s.number() })
	case 4: // tables
		s.vector(func() { s.want(funcRef); s.entries += s.limits(); s.bad = s.bad || s.entries > maxTable })
	case 5: // memories
		s.vector(func() { s.limits() })
	case 6: // globals
		s.vector(func() { s.valueType(); s.byte(); s.expression() })
	case 7: // exports
		s.vector(func() { s.bytes(); s.byte(); s.number() })
	case 8, 12: // the start function, the number of data segments
		s.number()
	case 9:
		s.vector(s.element)
	case 10: // code
		s.vector(func() { s.function(reader{rest: s.bytes()}) })
	case 11:
		s.vector(s.data)
	default:
		s.bad = true
	}
}

const funcRef = 0x70

func (s *shape) valueType() {
	if b := s.byte(); b != funcRef && b != 0x6f && (b < 0x7b || b > 0x7f) {
		s.bad = true
	}
}

// limits reads a minimum and an optional maximum size, and returns the minimum.
func (s *shape) limits() (least uint64) {
	flags := s.byte()
	least = s.number()
	if flags == 1 {
		s.number()
	} else if flags != 0 {
		s.bad = true
	}
	return least
}

// expression reads a constant expression.
func (s *shape) expression() {
	for !s.bad {
		switch op := s.byte(); op {
		case 0x0b: // end
			return
		case 0x41, 0x42, 0x23, 0xd0, 0xd2: // constants, global.get, references
			s.number()
		case 0x43:
			s.take(4)
		case 0x44:
			s.take(8)
		case 0xfd:
			s.want(0x0c)
			s.take(16)
		default:
			s.bad = true
		}
	}
}

func (s *shape) element() {
	flags := s.byte()
	if flags > 7 {
		s.bad = true
		return
	}
	passive, explicit, expressions := flags&1 != 0, flags&2 != 0, flags&4 != 0
	if !passive {
		if explicit {
			s.number()
		}
		s.expression()
	}
	if passive || explicit {
		s.byte() // element kind or type
	}
	if expressions {
		s.vector(s.expression)
	} else {
		s.vector(func() { s.number() })
	}
}

func (s *shape) data() {
	switch s.byte() {
	case 0:
		s.expression()
	case 1:
	case 2:
		s.number()
		s.expression()
	default:
		s.bad = true
	}
	s.bytes()
}

// function reads the locals of a function body. It does not read the code, which has no counts to check.
func (s *shape) function(body reader) {
	inner := shape{reader: body}
	var locals uint64
	inner.vector(func() {
		locals += inner.number()
		inner.valueType()
		inner.bad = inner.bad || locals > maxLocals
	})
	s.bad = s.bad || inner.bad
}

// reader parses the binary format of a module. After an error, bad is true and rest is empty.
type reader struct {
	rest []byte
	bad  bool
}

// vector reads a count and calls item for each element. An element has at least one byte.
func (r *reader) vector(item func()) {
	n := r.number()
	if n > uint64(len(r.rest)) || n > maxItems {
		r.bad = true
	}
	for ; n > 0 && !r.bad; n-- {
		item()
	}
}

// bytes reads a length and that number of bytes.
func (r *reader) bytes() []byte { return r.take(r.number()) }

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *reader) want(b byte) { r.bad = r.byte() != b || r.bad }

// number reads an unsigned LEB128 integer. For a signed one the result is wrong, but the number of bytes read is right.
func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}
