package journal

import (
	"bytes"
	"errors"
	"math"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// A Record is an entry as it is in the journal.
type Record struct {
	Entry

	Seq     uint64
	Prev    Hash   // hash of the line before
	Hash    Hash   // hash of this line, in the chain: that of the line before it was rewritten, if it was
	Line    []byte // the line itself, without its '\n'
	Segment uint64 // first seq of the segment that holds it
	Offset  int64  // where in the segment the line begins, in bytes

	Redacted bool // a member was removed from the line after it was appended
}

// errLayout is one value for all faults of a line, so that a reader of good lines pays nothing for it.
var errLayout = errors.New("line is not a journal entry")

// ParseLine parses a line as Append writes it, without its '\n': these members, in this order,
// without spaces, numbers and strings in canonical form, so that an entry has exactly one line.
// Request, Outcome and Line alias the line. Origin and Conn reuse the strings of r if they are
// equal. Hash and the place are not changed.
func ParseLine(line []byte, r *Record) error {
	if len(line) > MaxLine {
		return errLayout
	}
	// No error is looked at before the end: a line is good nearly always, and a bad cursor is cheap.
	c := cursor{b: line}
	c.word(`{"seq":`)
	r.Seq = c.uint()
	c.word(`,"prev":"`)
	c.hash(&r.Prev)
	c.word(`","time":`)
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

// A cursor reads tokens off a line. After the first that does not fit it is bad and reads nothing but zero values.
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

// int reads what strconv.AppendInt writes: there is no -0.
func (c *cursor) int() int64 {
	negative := at(c.b, c.i) == '-'
	if negative {
		c.i++
	}
	n := c.uint()
	if negative {
		c.bad = c.bad || n == 0 || n > -math.MinInt64
		return -int64(n) // also right for the smallest, which is its own negative
	}
	c.bad = c.bad || n > math.MaxInt64
	return int64(n)
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

// text reads a string in the form that appendString writes, and no other.
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

// unescape decodes the string that begins at start and has an escape or a byte beyond ASCII.
func (c *cursor) unescape(start int) string {
	end := valueEnd(c.b, start-1) // valid JSON from here on, so a backslash is followed by all that belongs to it
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

// maxDepth bounds how deep values may nest. A frame nests 64 deep at most (PROTOCOL 2), an outcome wraps its data.
const maxDepth = 129

// valueEnd returns the index after the JSON value that begins at b[i], or -1 if there is none, or
// it contains a line feed: a value never ends a line early. Names were checked when the message was
// decoded, and are not compared again.
func valueEnd(b []byte, i int) int {
	end := jsontype.Skip(b, i, maxDepth)
	if end > i && bytes.IndexByte(b[i:end], '\n') >= 0 {
		return -1
	}
	return end
}

// at is b[i], or NUL past the end: no JSON token begins with NUL, so ends need no test of their own.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}
