package acp

import (
	"bufio"
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Bounds of what either side may send.
const (
	longestLine = 32 << 20
	longestID   = 256
)

// message is a message of JSON-RPC 2.0. Of a response, result or failure is set; of others, method.
type message struct {
	id              string // as JSON, in the one form that an id has here; "": a notification
	method          string
	params          schema.Value // an object; nil: none
	result, failure schema.Value
}

// failure is an error of JSON-RPC.
type failure struct {
	code    int
	message string
}

// The codes of JSON-RPC 2.0.
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603
	authRequired   = -32000
	tooMany        = -32029
)

// parse reads one line. It takes nothing that two readers could understand differently, and knows no batches, which ACP has none of.
func parse(line []byte) (*message, *failure) {
	if !schema.Valid(line) {
		return nil, &failure{parseError, "the line is not one strict JSON value"}
	}
	if bytes.TrimSpace(line)[0] != '{' {
		return nil, &failure{invalidRequest, "a message is one JSON object: ACP has no batches"}
	}
	var m message
	version := ""
	var id schema.Value
	jsontype.Members(line, func(name, value []byte) bool {
		switch string(name) {
		case "jsonrpc":
			version = string(value)
		case "id":
			id = value
		case "method":
			m.method = string(jsontype.Unquote(value))
			if m.method == "" {
				m.method = "\x00" // no method has this name
			}
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.failure = value
		}
		return true
	})
	valid := true
	if m.id, valid = idOf(id); !valid {
		return nil, &failure{invalidRequest, "an id is an integer, or a string of at most " + strconv.Itoa(longestID) + " bytes"}
	}
	answers := m.result != nil || m.failure != nil
	switch {
	case version != `"2.0"`:
		return nil, &failure{invalidRequest, `jsonrpc must be "2.0"`}
	case m.method == "\x00":
		return nil, &failure{invalidRequest, "method must be a string"}
	case (m.method != "") == answers, m.result != nil && m.failure != nil, answers && m.id == "":
		return nil, &failure{invalidRequest, "a message is a request, a notification, or a response with an id and either result or error"}
	case m.params != nil && m.params[0] != '{', m.failure != nil && m.failure[0] != '{':
		return nil, &failure{invalidRequest, "params and error must be objects"}
	}
	return &m, nil
}

// idOf returns the one form of an id; "" for none.
func idOf(raw schema.Value) (id string, valid bool) {
	if raw == nil {
		return "", true
	}
	if raw[0] == '"' {
		text := jsontype.Unquote(raw)
		return string(schema.AppendString(nil, string(text))), len(text) <= longestID
	}
	n, err := strconv.ParseInt(string(raw), 10, 53)
	return strconv.FormatInt(n, 10), err == nil
}

// line returns the message as a line, made of what was read: nothing else passes.
func (m *message) line() []byte {
	out := []byte(`{"jsonrpc":"2.0"`)
	if m.id != "" {
		out = append(append(out, `,"id":`...), m.id...)
	}
	if m.method != "" {
		out = schema.AppendString(append(out, `,"method":`...), m.method)
	}
	for _, member := range []struct {
		name  string
		value schema.Value
	}{{"params", m.params}, {"result", m.result}, {"error", m.failure}} {
		if member.value != nil {
			out = appendPlain(append(append(append(out, `,"`...), member.name...), `":`...), member.value)
		}
	}
	return append(out, "}\n"...)
}

// appendPlain appends a valid JSON value without white space between its parts, and with characters escaped at which some readers end a
// line: what looks like a message within a value stays within it.
func appendPlain(out []byte, value schema.Value) []byte {
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\':
			out = append(out, c)
			i++
		case c <= ' ' && !quoted:
			continue
		case bytes.HasPrefix(value[i:], []byte("\u0085")):
			out, i = append(out, `\u0085`...), i+1
			continue
		case bytes.HasPrefix(value[i:], []byte("\u2028")):
			out, i = append(out, `\u2028`...), i+2
			continue
		case bytes.HasPrefix(value[i:], []byte("\u2029")):
			out, i = append(out, `\u2029`...), i+2
			continue
		}
		out = append(out, value[i])
	}
	return out
}

// answer returns the response to a request with an id; "" is one that could not be read.
func (f *failure) answer(id string) []byte {
	if id == "" {
		id = "null"
	}
	text := schema.AppendString(append(strconv.AppendInt([]byte(`{"code":`), int64(f.code), 10), `,"message":`...), f.message)
	return (&message{id: id, failure: append(text, '}')}).line()
}

// errTooLong is the error of a line that is longer than longestLine, and was skipped.
var errTooLong = errors.New("the line is longer than " + strconv.Itoa(longestLine) + " bytes")

// readLine reads the next line that is not blank. It returns io.EOF for a last line without a line feed, since its writer has ended within it.
func readLine(r *bufio.Reader) ([]byte, error) {
	for {
		var line []byte
		long := false
		for more := true; more; {
			part, err := r.ReadSlice('\n')
			more = errors.Is(err, bufio.ErrBufferFull)
			if err != nil && !more {
				return nil, err
			}
			if long = long || len(line)+len(part) > longestLine; long {
				line = nil
			} else {
				line = append(line, part...)
			}
		}
		if long {
			return nil, errTooLong
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// object is a JSON object by its members' names.
type object map[string]schema.Value

// objectOf returns the members of a value; none if it is no object.
func objectOf(raw schema.Value) object {
	o := make(object)
	if raw != nil {
		jsontype.Members(raw, func(name, value []byte) bool {
			o[string(name)] = value
			return true
		})
	}
	return o
}

// text returns a member that is a string, else "".
func (o object) text(name string) string {
	if raw := o[name]; raw != nil {
		return string(jsontype.Unquote(raw))
	}
	return ""
}

// with returns the object with a member set.
func (o object) with(name string, value schema.Value) object {
	more := maps.Clone(o)
	more[name] = value
	return more
}

// json returns the object as JSON.
func (o object) json() schema.Value {
	out := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(schema.AppendString(out, name), ':'), o[name]...)
	}
	return append(out, '}')
}

// quoted returns a text as JSON.
func quoted(text string) schema.Value { return schema.AppendString(nil, text) }
