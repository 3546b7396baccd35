package journal

import (
	"errors"
	"strconv"
	"unicode/utf8"
)

// MaxLine is the longest line of a journal in bytes, without '
// '.
const MaxLine = 16 << 20

// lineOverhead is more than the size of a line without its four texts.
const lineOverhead = 512

// An Entry is one decoded syscall with its outcome (PROTOCOL 7).
type Entry struct {
	Time      int64  // Unix milliseconds
	Tick      int64  // the kernel's tick
	PID       int64  // the caller
	Origin    string // sender that the message names
	Conn      string // connection that the message came in on
	Request   []byte // the message, one JSON value on one line, secrets redacted; nil is written as null
	Outcome   []byte // in the same form
	LatencyUS int64  // microseconds
}

var (
	errRequest = errors.New("request is not one JSON value on one line")
	errOutcome = errors.New("outcome is not one JSON value on one line")
	errTooLong = errors.New("entry is longer than a line may be")
)

// Check reports whether Append would accept e: Request and Outcome must each be one strict JSON
// value (RFC 8259, nested at most 129 deep, without a line feed and without white space around it),
// and the entry must fit MaxLine.
func (e *Entry) Check() error {
	if e.Request != nil && valueEnd(e.Request, 0) != len(e.Request) {
		return errRequest
	}
	if e.Outcome != nil && valueEnd(e.Outcome, 0) != len(e.Outcome) {
		return errOutcome
	}
	// A byte of a string takes at most six bytes in JSON.
	if len(e.Request)+len(e.Outcome)+6*(len(e.Origin)+len(e.Conn)) > MaxLine-lineOverhead {
		return errTooLong
	}
	return nil
}

// appendLine appends e as the line of entry seq, without its '
// '. parseLine reads exactly this form.
func appendLine(dst []byte, seq uint64, prev *Hash, e *Entry) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, `,"prev":"`...)
	dst = appendHash(dst, prev)
	dst = append(dst, `","time":`...)
	dst = strconv.AppendInt(dst, e.Time, 10)
	dst = append(dst, `,"tick":`...)
	dst = strconv.AppendInt(dst, e.Tick, 10)
	dst = append(dst, `,"pid":`...)
	dst = strconv.AppendInt(dst, e.PID, 10)
	dst = append(dst, `,"origin":`...)
	dst = appendString(dst, e.Origin)
	dst = append(dst, `,"conn":`...)
	dst = appendString(dst, e.Conn)
	dst = append(dst, `,"request":`...)
	dst = appendRaw(dst, e.Request)
	dst = append(dst, `,"outcome":`...)
	dst = appendRaw(dst, e.Outcome)
	dst = append(dst, `,"latency_us":`...)
	dst = strconv.AppendInt(dst, e.LatencyUS, 10)
	return append(dst, '}')
}

// plainByte marks the plain bytes of a JSON string: ASCII without controls, the quote and the
// backslash.
var plainByte = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func appendRaw(dst, raw []byte) []byte {
	if raw == nil {
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}

// appendString appends s as a JSON string in its one canonical form: \" and \\, \u00xx for control
// characters, U+FFFD for bytes that are not UTF-8, everything else unchanged.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plainByte[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		switch {
		case c >= utf8.RuneSelf:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		case c < ' ':
			dst = append(dst, `\u00`...)
			dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, '\\', c)
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// With returns the record's line, without its '
// ', with another request and outcome.
func (r *Record) With(request, outcome []byte) []byte {
	e := r.Entry
	e.Request, e.Outcome = request, outcome
	return appendLine(nil, r.Seq, &r.Prev, &e)
}
