package egress

import (
	"bytes"
	"cmp"
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/effect/price"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// meter reads the usage that a model's answer reports, from a JSON object or from a stream of events that have one each. It buffers
// at most the current member.
type meter struct {
	events bool
	line   []byte // the beginning of a line, up to the length of the last event of a chat
	data   bool   // the rest of the line is data
	skip   bool   // the line is not data
	json   scanner
	found  schema.NetUsage
	some   bool
	within bool // the input tokens include those read from a cache, as in the answers of OpenAI and Gemini
	// Gemini counts apart what a model has said and what it has thought, and what it was asked and what its tools have found.
	said, thought, asked, looked int64
	came                         int64 // number of events with data, or of bytes of a JSON object
	ended                        bool  // the last event of a stream has been read
}

// mostTokens bounds the numbers that an answer can report, so that sums do not overflow.
const mostTokens = 1 << 40

// bytesPerToken is the approximate size of a token in a JSON object.
const bytesPerToken = 4

// newMeter returns a meter for a content type, nil if answers of that type report no usage.
func newMeter(contentType string) *meter {
	kind, _, _ := mime.ParseMediaType(contentType)
	m := &meter{}
	m.json.see = m.see
	switch {
	case kind == "text/event-stream":
		m.events = true
	case kind != "application/json" && !strings.HasSuffix(kind, "+json"):
		return nil
	}
	return m
}

// usage returns the reported usage with its cost, nil if there is none. If the answer of a model is incomplete, or a stream has no
// report, and asked is not nil, it estimates the output: one token per event, or per bytesPerToken bytes of an object.
func (m *meter) usage(prices price.Table, asked *asks, all bool) *schema.NetUsage {
	whole := all && (m.some || !m.events) // a complete object has its report
	switch {
	case asked != nil && (asked.model != "" || m.found.Model != "") && !whole:
		m.found.Model = cmp.Or(m.found.Model, clip(asked.model, maxToken))
		if !m.events {
			m.came /= bytesPerToken
		}
		m.found.Output, m.found.Estimated = max(m.found.Output, m.came), true
	case !m.some:
		return nil
	}
	model := m.found.Model
	if asked != nil {
		model = cmp.Or(model, asked.model)
	}
	its, known := prices.Of(model)
	m.found.MicroUSD, m.found.Dearest = cost(its, &m.found, m.within), !known
	return &m.found
}

func (m *meter) write(p []byte) {
	if !m.events {
		m.came += int64(len(p))
		m.json.write(p)
		return
	}
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		part := p
		if end >= 0 {
			part = p[:end]
		}
		m.part(part)
		if end < 0 {
			return
		}
		m.line, m.data, m.skip = m.line[:0], false, false
		m.json = scanner{see: m.see}
		p = p[end+1:]
	}
}

// part processes a piece of a line of the stream.
func (m *meter) part(p []byte) {
	const field = "data:"
	for !m.data && !m.skip && len(p) > 0 {
		m.line = append(m.line, p[0])
		p = p[1:]
		m.data = string(m.line) == field
		m.skip = !strings.HasPrefix(field, string(m.line))
		if m.data {
			m.came++
		}
	}
	if m.data {
		m.line = append(m.line, p[:min(len(p), len(field+" "+lastData)-len(m.line))]...)
		m.ended = m.ended || strings.TrimSpace(string(m.line[len(field):])) == lastData
		m.json.write(p)
	}
}

// lastData is what ends the stream of a chat completion of OpenAI; lastTypes are the last events of Anthropic's streams and of
// the responses of OpenAI.
const lastData = "[DONE]"

var lastTypes = []string{`"message_stop"`, `"response.completed"`, `"response.incomplete"`, `"response.failed"`}

// see processes a scalar of the answer. It knows the member names of Anthropic's API, of both OpenAI APIs and of Gemini's. A later report
// replaces an earlier one.
func (m *meter) see(path, value string) {
	m.ended = m.ended || m.events && path == "type" && slices.Contains(lastTypes, value)
	path = strings.TrimPrefix(strings.TrimPrefix(path, "message."), "response.")
	if path == "model" || path == "modelVersion" {
		if text, ok := strings.CutPrefix(value, `"`); ok && m.found.Model == "" {
			m.found.Model = strings.ToValidUTF8(strings.TrimSuffix(text, `"`), "?")
		}
		return
	}
	to := map[string]*int64{
		"usage.input_tokens": &m.found.Input, "usage.prompt_tokens": &m.found.Input,
		"usage.output_tokens": &m.found.Output, "usage.completion_tokens": &m.found.Output,
		"usage.cache_read_input_tokens": &m.found.CachedRead, "usage.prompt_tokens_details.cached_tokens": &m.found.CachedRead,
		"usage.input_tokens_details.cached_tokens": &m.found.CachedRead,
		"usage.cache_creation_input_tokens":        &m.found.CachedWrite,
		"usageMetadata.promptTokenCount":           &m.asked,
		"usageMetadata.toolUsePromptTokenCount":    &m.looked,
		"usageMetadata.cachedContentTokenCount":    &m.found.CachedRead,
		"usageMetadata.candidatesTokenCount":       &m.said,
		"usageMetadata.thoughtsTokenCount":         &m.thought,
	}[path]
	if to == nil {
		return
	}
	m.within = m.within || strings.HasSuffix(path, ".cached_tokens") || path == "usageMetadata.cachedContentTokenCount"
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 && n <= mostTokens {
		*to, m.some = n, true
	}
	switch to {
	case &m.said, &m.thought:
		m.found.Output = m.said + m.thought
	case &m.asked, &m.looked:
		m.found.Input = m.asked + m.looked
	}
}

// scanner calls see for each scalar of a streamed JSON object, with its path: member names joined by dots, or of each object of a list. It
// skips arrays in objects and levels deeper than maxNesting. It does not validate the JSON.
type scanner struct {
	see func(path, value string)

	path    []string // names that lead to the current position
	depth   int      // number of open objects that are not skipped
	hidden  int      // number of open objects and arrays that are skipped
	name    string   // of the current member
	valued  bool     // the next token is a value, not a name
	text    bool     // in a string
	escaped bool
	coded   bool // the string has an escape
	token   []byte
	long    bool
}

const (
	maxNesting = 4
	maxToken   = 128
)

func (s *scanner) write(p []byte) {
	for _, c := range p {
		switch {
		case s.text:
			s.inText(c)
		case s.hidden > 0:
			s.pass(c)
		default:
			s.next(c)
		}
	}
}

func (s *scanner) inText(c byte) {
	s.add(c)
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped, s.coded = true, true
	case c == '"':
		s.text = false
		if s.coded && !s.long { // compare the unescaped string, as servers do
			s.token = append(append([]byte{'"'}, jsontype.Unquote(s.token)...), '"')
		}
	}
}

// pass processes a byte of a skipped value.
func (s *scanner) pass(c byte) {
	switch c {
	case '"':
		s.begin(c)
	case '{', '[':
		s.hidden++
	case '}', ']':
		s.hidden--
		s.token, s.long = s.token[:0], true
	}
}

func (s *scanner) next(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n':
	case '"':
		s.begin(c)
	case ':':
		if !s.valued {
			s.name, s.valued = strings.Trim(string(s.token), `"`), true
			if s.long {
				s.name = ""
			}
		}
		s.token, s.long = s.token[:0], false
	case '{':
		if s.depth == maxNesting || s.depth > 0 && !s.valued {
			s.hidden = 1
			return
		}
		if s.depth > 0 {
			s.path = append(s.path, s.name)
		}
		s.depth++
		s.valued = false
		s.token, s.long = s.token[:0], false
	case '[':
		if s.depth > 0 { // a list at the top has answers: Gemini streams so
			s.hidden = 1
		}
	case ',', '}':
		s.value()
		if c == '}' && s.depth > 0 {
			s.depth--
			if len(s.path) > 0 {
				s.path = s.path[:len(s.path)-1]
			}
			s.long = true // an object is not a scalar
			s.valued = s.depth > 0
		}
	default:
		s.add(c)
	}
}

func (s *scanner) begin(c byte) {
	s.text, s.escaped, s.coded = true, false, false
	s.token, s.long = append(s.token[:0], c), false
}

func (s *scanner) add(c byte) {
	if len(s.token) == maxToken {
		s.long = true
		return
	}
	s.token = append(s.token, c)
}

// value calls see with the current scalar, if there is one.
func (s *scanner) value() {
	if s.valued && !s.long && len(s.token) > 0 && s.depth > 0 {
		s.see(strings.Join(append(s.path[:len(s.path):len(s.path)], s.name), "."), string(s.token))
	}
	s.token, s.long, s.valued = s.token[:0], false, false
}
