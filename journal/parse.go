package journal

import (
	"bytes"
	"errors"
	"math"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// A Record is an entry in a journal.
type Record struct {
	Entry

	Seq     uint64
	Prev    Hash   // hash of the line before
	Hash    Hash   // hash of this line in the chain: if it was rewritten, that of the original line
	Line    []byte // the line itself, without its '\n'
	Segment uint64 // first seq of the segment that holds it
	Offset  int64  // offset of the line in the segment, in bytes

	Redacted bool // a member was removed from the line after it was appended
}

// errLayout is one value for all faults of a line, so that it costs nothing for good lines.
var errLayout = errors.New("line is not a journal entry")

// ParseLine parses a line as Append writes it, without its '\n': these members, in this order,
// without spaces, numbers and strings in canonical form, so that an entry has exactly one line.
// Request, Outcome and Line alias the line. Origin and Conn reuse the strings of r if they are
// equal. Hash and the place are not changed.
func ParseLine(line []byte, r *Record) error {
	if len(line) > MaxLine {
		return errLayout
	}
	// Errors are checked only at the end: nearly all lines are good, and reading with a bad cursor is cheap.
	c := cursor{b: line}
	c.place(r)
	c.word(`,"time":`)
	r.Time = c.int()
	c.word(`,"tick":`)
	r.Tick = c.int()
	c.word(`,"pid":`)
	r.PID = c.int()
	c.word(`,"origin":`)
	r.Origin = c.text(r.Origin)
	c.word(`,"conn":`)
	r.Conn = c.text(r.Conn)
	c.word(`,"request":`)
	r.Request = c.raw()
	c.word(`,"outcome":`)
	r.Outcome = c.raw()
	c.word(`,"latency_us":`)
	r.LatencyUS = c.int()
	c.word(`}`)
	if c.bad || c.i != len(line) || r.Seq == 0 {
		return errLayout
	}
	r.Line = line
	return nil
}

// parsePlace parses only the place of a line in the chain: Seq and Prev.
func parsePlace(line []byte, r *Record) error {
	c := cursor{b: line}
	if c.place(r); c.bad || r.Seq == 0 {
		return errLayout
	}
	r.Line = line
	return nil
}

// A cursor reads tokens of a line. After the first error it is bad, and returns only zero values.
type cursor struct {
	b   []byte
	i   int
	bad bool
}

func (c *cursor) word(w string) {
	if c.bad || len(c.b)-c.i < len(w) || string(c.b[c.i:c.i+len(w)]) != w {
		c.bad = true
		return
	}
	c.i += len(w)
}

// uint reads a number without a sign and without leading zeros.
func (c *cursor) uint() uint64 {
	start, n := c.i, uint64(0)
	for d := at(c.b, c.i); d >= '0' && d <= '9'; d = at(c.b, c.i) {
		next := n*10 + uint64(d-'0')
		c.bad = c.bad || n > math.MaxUint64/10 || next < n
		n = next
		c.i++
	}
	digits := c.i - start
	c.bad = c.bad || digits == 0 || digits > 1 && c.b[start] == '0'
	return n
}

// int reads the form that strconv.AppendInt writes: there is no -0.
func (c *cursor) int() int64 {
	negative := at(c.b, c.i) == '-'
	if negative {
		c.i++
	}
	n := c.uint()
	if negative {
		c.bad = c.bad || n == 0 || n > -math.MinInt64
		return -int64(n) // also correct for the smallest, which is its own negative
	}
	c.bad = c.bad || n > math.MaxInt64
	return int64(n)
}

// place reads the members with which all lines begin.
func (c *cursor) place(r *Record) {
	c.word(`{"seq":`)
	r.Seq = c.uint()
	c.word(`,"prev":"`)
	c.hash(&r.Prev)
	c.word(`"`)
}

func (c *cursor) hash(h *Hash) {
	if c.bad || len(c.b)-c.i < hexHashLen || !decodeHash(h, c.b[c.i:c.i+hexHashLen]) {
		c.bad = true
		return
	}
	c.i += hexHashLen
}

// raw reads a value of any kind, unchanged.
func (c *cursor) raw() []byte {
	if c.bad {
		return nil
	}
	end := valueEnd(c.b, c.i)
	if end < 0 {
		c.bad = true
		return nil
	}
	raw := c.b[c.i:end:end]
	c.i = end
	return raw
}

// text reads a string in exactly the form that appendString writes.
func (c *cursor) text(old string) string {
	if c.bad || at(c.b, c.i) != '"' {
		c.bad = true
		return ""
	}
	start := c.i + 1
	end := start
	for end < len(c.b) && plainByte[c.b[end]] {
		end++
	}
	if at(c.b, end) == '"' {
		c.i = end + 1
		if s := c.b[start:end]; string(s) != old {
			return string(s)
		}
		return old
	}
	return c.unescape(start)
}

// unescape decodes the string that starts at start and has an escape or a byte beyond ASCII.
func (c *cursor) unescape(start int) string {
	end := valueEnd(c.b, start-1) // valid JSON, so a backslash is followed by a complete escape
	if end < 0 {
		c.bad = true
		return ""
	}
	s := make([]byte, 0, end-start)
	for i := start; i < end-1; i++ {
		if c.b[i] != '\\' {
			s = append(s, c.b[i])
			continue
		}
		i++
		switch {
		case c.b[i] == '"' || c.b[i] == '\\':
			s = append(s, c.b[i])
		case c.b[i] == 'u' && c.b[i+1] == '0' && c.b[i+2] == '0' && c.b[i+3] <= '1' && hexValue[c.b[i+4]] < 16:
			s = append(s, hexValue[c.b[i+3]]<<4|hexValue[c.b[i+4]])
			i += 4
		default:
			c.bad = true
			return ""
		}
	}
	c.i = end
	return string(s)
}

// maxDepth bounds how deep values may nest. A frame nests at most 64 deep (PROTOCOL 2), and an outcome wraps its data.
const maxDepth = 129

// valueEnd returns the index after the JSON value that starts at b[i], or -1 if there is none, or it contains a line feed.
// Duplicate names were refused when the message was decoded, and are not checked again.
func valueEnd(b []byte, i int) int {
	end := jsontype.Skip(b, i, maxDepth)
	if end > i && bytes.IndexByte(b[i:end], '\n') >= 0 {
		return -1
	}
	return end
}

// at returns b[i], or NUL past the end. No JSON token starts with NUL, so callers need not check for the end.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}
