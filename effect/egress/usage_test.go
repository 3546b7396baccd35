package egress_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestUsage checks the usage that is read from answers of models, however the answer is split.
func TestUsage(t *testing.T) {
	t.Parallel()
	const json, events = "application/json; charset=utf-8", "text/event-stream"
	tests := []struct {
		name, typ, body string
		want            *schema.NetUsage
	}{
		{
			"messages", json, `{"id":"msg_1","model":"claude-x","content":[{"type":"text","text":"{\"usage\":{\"input_tokens\":99}}"}],"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":20}}`,
			&schema.NetUsage{Model: "claude-x", Input: 10, Output: 20, CachedRead: 7, CachedWrite: 5},
		},
		{
			"a tool's input that looks like a report", json, `{"model":"m","content":[{"type":"tool_use","input":{"usage":{"input_tokens":99,"output_tokens":99}}}],"x":{"y":{"usage":{"output_tokens":98}}},"usage":{"input_tokens":1,"output_tokens":2}}`,
			&schema.NetUsage{Model: "m", Input: 1, Output: 2},
		},
		{
			"chat completions", json, "{\n  \"model\": \"gpt-x\",\n  \"choices\": [{\"message\": {\"content\": \"hi ] } , \\\" \"}}],\n  \"usage\": {\"prompt_tokens\": 9, \"completion_tokens\": 12, \"total_tokens\": 21, \"prompt_tokens_details\": {\"cached_tokens\": 4}}\n}",
			&schema.NetUsage{Model: "gpt-x", Input: 9, Output: 12, CachedRead: 4},
		},
		{
			"responses", json, `{"model":"o","output":[],"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":1},"output_tokens":4}}`,
			&schema.NetUsage{Model: "o", Input: 3, Output: 4, CachedRead: 1},
		},
		{
			"Gemini", json, `{"candidates":[{"content":{"parts":[{"text":"hi"}]}}],"usageMetadata":{"promptTokenCount":4,"toolUsePromptTokenCount":5,"candidatesTokenCount":12,"thoughtsTokenCount":30,"totalTokenCount":51,"cachedContentTokenCount":4,"promptTokensDetails":[{"tokenCount":9}]},"modelVersion":"gemini-x"}`,
			&schema.NetUsage{Model: "gemini-x", Input: 9, Output: 42, CachedRead: 4},
		},
		{
			"Gemini, streamed as a list", json, "[{\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":1},\"modelVersion\":\"g\"}\n,\n{\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":12}}\n]",
			&schema.NetUsage{Model: "g", Input: 9, Output: 12},
		},
		{
			"Gemini, streamed", events, "data: {\"usageMetadata\":{\"promptTokenCount\":9,\"thoughtsTokenCount\":5},\"modelVersion\":\"g\"}\n\ndata: {\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":2,\"thoughtsTokenCount\":6}}\n\n",
			&schema.NetUsage{Model: "g", Input: 9, Output: 8},
		},
		{
			"messages, streamed", events, "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"c\",\"content\":[],\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\r\n\r\nevent: ping\ndata: {\"type\":\"ping\"}\n\n:comment\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"data: {\\\"usage\\\":{\\\"output_tokens\\\":999}}\"}}\n\nevent: message_delta\ndata: {\"usage\":{\"output_tokens\":15}}\n\n",
			&schema.NetUsage{Model: "c", Input: 25, Output: 15},
		},
		{
			"chat completions, streamed", events, "data: {\"model\":\"g\",\"choices\":[{\"delta\":{\"content\":\"x\"}}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
			&schema.NetUsage{Model: "g", Input: 1, Output: 2},
		},
		{
			"responses, streamed", events, "event: response.completed\ndata:{\"type\":\"response.completed\",\"response\":{\"model\":\"o\",\"usage\":{\"input_tokens\":5,\"output_tokens\":6,\"input_tokens_details\":{\"cached_tokens\":2}}}}\n\n",
			&schema.NetUsage{Model: "o", Input: 5, Output: 6, CachedRead: 2},
		},
		{"nothing", json, `{"model":"m"}`, nil},
		{"no JSON", "text/plain", `{"usage":{"input_tokens":1}}`, nil},
		{"an array", json, `[{"usage":{"input_tokens":1}}]`, &schema.NetUsage{Input: 1}},
		{"odd numbers", json, `{"usage":{"input_tokens":-1,"output_tokens":1e9,"prompt_tokens":"7","completion_tokens":9007199254740993000}}`, nil},
		{"more than anybody has", json, `{"usage":{"input_tokens":1099511627777,"output_tokens":4503599627370495}}`, nil},
		{"a long name", json, `{"model":"` + strings.Repeat("m", 1000) + `","usage":{"input_tokens":1}}`, &schema.NetUsage{Input: 1}},
	}
	for _, tt := range tests {
		whole := egress.Usage(tt.typ, []byte(tt.body))
		if diff := cmp.Diff(tt.want, whole); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		var bytewise [][]byte
		for i := range len(tt.body) {
			bytewise = append(bytewise, []byte(tt.body[i:i+1]))
		}
		if diff := cmp.Diff(whole, egress.Usage(tt.typ, bytewise...)); diff != "" {
			t.Errorf("%s, byte by byte (-whole +bytes):\n%s", tt.name, diff)
		}
	}
}

// FuzzUsage checks that no answer makes the meter panic, and that the result does not depend on the split.
func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"model":"m","usage":{"input_tokens":1,"output_tokens":2}}`), uint(7))
	f.Add([]byte("data: {\"usage\":{\"prompt_tokens\":3}}\n\n"), uint(3))
	f.Add([]byte(`}}}]]]"\"{[{[{[,:,:`), uint(1))
	f.Fuzz(func(t *testing.T, body []byte, cut uint) {
		for _, typ := range []string{"application/json", "text/event-stream"} {
			at := int(cut % uint(len(body)+1))
			if diff := cmp.Diff(egress.Usage(typ, body), egress.Usage(typ, body[:at], body[at:])); diff != "" {
				t.Errorf("%s, cut at %d: %s", typ, at, diff)
			}
		}
	})
}

// hello returns the first bytes of a TLS client.
func hello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() { _ = tls.Client(theirs, config).Handshake() }()
	defer theirs.Close()
	defer ours.Close()
	_, read, err := egress.PeekHello(ours)
	testkit.Must(t, err)
	return read
}

// FuzzPeekHello checks that peekHello returns exactly the bytes that it read.
func FuzzPeekHello(f *testing.F) {
	f.Add(hello(f, &tls.Config{ServerName: "allowed.test"}))
	f.Add(hello(f, &tls.Config{InsecureSkipVerify: true}))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Add([]byte{0x16, 3, 1, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, said []byte) {
		r := bytes.NewReader(said)
		name, read, err := egress.PeekHello(r)
		rest, _ := io.ReadAll(r)
		if !bytes.Equal(append(read, rest...), said) {
			t.Errorf("of %x, peekHello returned %x", said, read)
		}
		if name != strings.ToLower(name) || err != nil && name != "" {
			t.Errorf("name %q, %v", name, err)
		}
	})
}

// FuzzAnswer checks that no query makes the name server panic, answer an answer, or send a much longer answer.
func FuzzAnswer(f *testing.F) {
	s := egress.New(egress.Config{Tokens: nobody{}, Tick: func() int64 { return 0 }, Log: slog.New(slog.DiscardHandler)})
	f.Add(query(f, "allowed.test", dnsmessage.TypeA))
	f.Add(query(f, "allowed.test", dnsmessage.TypeALL)[:20])
	f.Add([]byte{0, 77, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, query []byte) {
		answer := s.Answer(query)
		if answer == nil {
			return
		}
		var p dnsmessage.Parser
		h, err := p.Start(answer)
		if err != nil || !h.Response || len(query) > 2 && query[2]&0x80 != 0 || len(answer) > 512 {
			t.Errorf("%x is answered with %x", query, answer)
		}
	})
}

// nobody is a kernel.Tokens without tokens.
type nobody struct{}

func (nobody) Token(int64) *kernel.Token { return nil }
