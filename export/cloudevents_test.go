package export_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/promptware-os/pwos/export"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func entryAt(seq int64) *export.Record {
	return &export.Record{
		At: export.Position{Instance: "0123456789abcdef", Epoch: 2, Seq: seq},
		Entry: schema.AuditEntry{
			Success: true, SyscallCode: "Memory.Set", PID: 7, Seq: seq, Type: "Memory.Set", Time: 1735000000123, ID: "m-1",
			Correlation: "flow \"9\"\n", Status: "ok",
		},
	}
}

// TestCloudEvents: each line is a valid event by the SDK's validator, and its position is that of its record.
func TestCloudEvents(t *testing.T) {
	t.Parallel()
	r := entryAt(42)
	line, err := export.CloudEvents.Line(r)
	testkit.Must(t, err)
	if !strings.HasPrefix(string(line), export.CloudEvents.Begin) || strings.ContainsAny(string(line), "\r\n") {
		t.Errorf("the line is %s", line)
	}
	var e cloudevents.Event
	testkit.Must(t, e.UnmarshalJSON(line))
	testkit.Must(t, e.Validate())
	for what, pair := range map[string][2]string{
		"id": {e.ID(), "0123456789abcdef/2/42"}, "source": {e.Source(), "urn:pwos:0123456789abcdef"}, "type": {e.Type(), "pwos.Memory.Set"},
		"subject": {e.Subject(), "pid/7"}, "time": {e.Time().Format(time.RFC3339Nano), "2024-12-24T00:26:40.123Z"},
		"correlation": {e.Extensions()["correlationid"].(string), "flow \"9\"\n"}, "content type": {e.DataContentType(), "application/json"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
		}
	}
	if _, there := e.Extensions()["causationid"]; there {
		t.Error("a call without a cause has a causationid")
	}
	at, err := export.CloudEvents.At(line)
	testkit.Must(t, err)
	if at != r.At {
		t.Errorf("the line is of %v, want %v", at, r.At)
	}
	for _, foreign := range []string{
		`{"specversion":"1.0","id":"a/1/2","source":"urn:pwos:b","type":"pwos.X.Y"}`,
		`{"specversion":"1.0","id":"a/1/2","source":"urn:pwos:a","type":"com.example"}`,
		`{"specversion":"1.0","id":"1","source":"urn:pwos:a","type":"pwos.X.Y"}`, `{}`, `nonsense`,
	} {
		if at, err := export.CloudEvents.At([]byte(foreign)); err == nil {
			t.Errorf("%s: got record %v, want an error", foreign, at)
		}
	}
}

// receiver receives events, and answers the n-th request, from 0 on, with the status of answers(n).
type receiver struct {
	mu      sync.Mutex
	ids     []string
	asked   int
	answers func(n int) int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	code := http.StatusNoContent
	if r.answers != nil {
		code = r.answers(r.asked)
	}
	r.asked++
	var e cloudevents.Event
	if err := e.UnmarshalJSON(body); err != nil || e.Validate() != nil || req.Header.Get("Authorization") != "Bearer t" ||
		req.Header.Get("Content-Type") != "application/cloudevents+json; charset=UTF-8" {
		code = http.StatusBadRequest
	}
	if code < 300 {
		r.ids = append(r.ids, e.ID())
	}
	w.WriteHeader(code)
}

// TestWebhook: records are posted in order, each until the receiver accepts it; a final refusal ends the export.
func TestWebhook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		answers func(n int) int
		want    error
		ids     []string
		notices int
	}{
		{"all accepted", nil, nil, []string{"0123456789abcdef/2/1", "0123456789abcdef/2/2"}, 0},
		{"busy at first", func(n int) int { return []int{503, 429, 408, 200}[min(n, 3)] }, nil, []string{"0123456789abcdef/2/1", "0123456789abcdef/2/2"}, 1},
		{"second refused", func(n int) int { return []int{200, 422}[min(n, 1)] }, fault.ExportRefused, []string{"0123456789abcdef/2/1"}, 0},
		{"moved", func(int) int { return http.StatusTemporaryRedirect }, fault.ExportRefused, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{answers: tt.answers}
			server := httptest.NewServer(r)
			t.Cleanup(server.Close)
			notices := 0
			w, err := export.NewWebhook(export.Receiver{URL: server.URL, Header: http.Header{"Authorization": {"Bearer t"}}, Patience: time.Minute, Notice: func(string) { notices++ }})
			testkit.Must(t, err)
			err = w.Deliver(t.Context(), []*export.Record{entryAt(1), entryAt(2)})
			testkit.Must(t, w.Close())
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("got error %v, want %v", err, tt.want)
			}
			if !slices.Equal(r.ids, tt.ids) || notices != tt.notices {
				t.Errorf("received %v after %d notices, want %v after %d", r.ids, notices, tt.ids, tt.notices)
			}
		})
	}
}

// TestWebhookUnreachable: an unreachable receiver is an error after patience, and the end of the export ends the wait.
func TestWebhookUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	w, err := export.NewWebhook(export.Receiver{URL: server.URL, Patience: time.Nanosecond, Notice: func(string) {}})
	testkit.Must(t, err)
	if err := w.Deliver(t.Context(), []*export.Record{entryAt(1)}); !errors.Is(err, fault.ExportUndelivered) {
		t.Errorf("got error %v, want %v", err, fault.ExportUndelivered)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, err = export.NewWebhook(export.Receiver{URL: server.URL, Notice: func(string) { cancel() }})
	testkit.Must(t, err)
	if err := w.Deliver(ctx, []*export.Record{entryAt(1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

// TestCheckReceiver: records leave the machine only encrypted.
func TestCheckReceiver(t *testing.T) {
	t.Parallel()
	for to, fine := range map[string]bool{
		"https://events.example/in": true, "http://127.0.0.1:8080/": true, "http://[::1]/": true, "http://localhost:1": true,
		"http://events.example/in": false, "http://127.0.0.1.example/": false, "ftp://127.0.0.1/": false, "events.example": false, "": false,
		"https://": false, "https://user:secret@events.example/": false, "https://events.example/#x": false, "http://127.0.0.1@evil.example/": false,
	} {
		if err := export.CheckReceiver(to); (err == nil) != fine {
			t.Errorf("%q: got error %v, want an error: %t", to, err, !fine)
		}
	}
}
