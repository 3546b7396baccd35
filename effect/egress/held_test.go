package egress_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestEndWaitsForRecord checks that an agent with a budget gets the end of an answer once its cost is recorded, and what came
// before at once. Otherwise its next request might be admitted although the first has used up the budget.
func TestEndWaitsForRecord(t *testing.T) {
	t.Parallel()
	const json, events, usage = "application/json", "text/event-stream", `"usage":{"input_tokens":1,"output_tokens":2}`
	for name, test := range map[string]struct {
		typ, first, last string
		end              string // what of last is held back, unless it is long
		sized, long      bool   // it has a Content-Length; more follows than is held back
		lost             error  // its cost cannot be recorded
	}{
		"an object of a known size":     {typ: json, last: `{` + usage + `}`, end: usage, sized: true},
		"an object":                     {typ: json, first: `{` + usage, last: `}`, end: "0\r\n\r\n"},
		"Anthropic's events":            {typ: events, first: "data: {" + usage + "}\n\n", last: "data: {\"type\":\"message_stop\"}\n\n", end: "message_stop"},
		"OpenAI's events of a chat":     {typ: events, first: "data: {" + usage + "}\n\n", last: "data: [DONE]\n\n", end: "[DONE]"},
		"OpenAI's events of a response": {typ: events, first: "data: {}\n\n", last: "data: {\"type\":\"response.completed\",\"response\":{" + usage + "}}\n\n", end: "response.completed"},
		"a last event that is not":      {typ: events, first: "data: {}\n\n", last: "data: [DONE]\n\n" + strings.Repeat(": and on\n", 10<<10), end: "[DONE]", long: true},
		"an object that is lost":        {typ: json, last: `{` + usage + `}`, end: usage, sized: true, lost: errors.New("the disk is full")},
		"events that are lost":          {typ: events, first: "data: {}\n\n", last: "data: [DONE]\n\n", end: "[DONE]", lost: errors.New("the disk is full")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.typ)
				if test.sized {
					w.Header().Set("Content-Length", strconv.Itoa(len(test.last)))
				}
				_, _ = io.WriteString(w, test.first)
				_ = http.NewResponseController(w).Flush()
				<-more
				_, _ = io.WriteString(w, test.last)
			}))
			t.Cleanup(server.Close)
			h := open(t, withUpstream(upstream(t, server.URL)), metered)
			h.recording = make(chan error)
			h.grant(nil, "Upstream:model")
			conn, err := net.Dial("tcp", strings.TrimPrefix(h.upstreams["model"], "http://"))
			testkit.Must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			body := `{"model":"m-1"}`
			_, err = fmt.Fprintf(conn, "POST /v1/chat HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			testkit.Must(t, err)
			var before []byte
			testkit.Must(t, conn.SetReadDeadline(time.Now().Add(testkit.Patience)))
			for b := make([]byte, 1); !bytes.Contains(before, []byte(test.first)); {
				_, err := io.ReadFull(conn, b)
				testkit.Must(t, err)
				before = append(before, b...)
			}
			close(more)
			<-h.recording
			testkit.Must(t, conn.SetReadDeadline(time.Now().Add(20*time.Millisecond))) // what was sent is there
			rest, err := io.ReadAll(conn)
			before = append(before, rest...)
			if has := bytes.Contains(before, []byte(test.end)); has != test.long || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("before the record it has %.300q, %v", before, err)
			}
			h.recording <- test.lost
			testkit.Must(t, conn.SetReadDeadline(time.Now().Add(testkit.Patience)))
			after, err := io.ReadAll(conn)
			if has := bytes.Contains(append(before, after...), []byte(test.end)); err != nil || has != (test.lost == nil) {
				t.Errorf("after the record it has %.300q, %v", after, err)
			}
		})
	}
}
