package http_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestOpenCredentials shows that credentials are sent unchanged and are in no entry of the journal, while other headers
// are; and that idempotency keys work for such calls too, before and after a restart.
func TestOpenCredentials(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var sent atomic.Value
	p := start(t, func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		sent.Store(r.Header.Get("Authorization") + r.Header.Get("Cookie") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Note"))
	})
	c := p.dial()
	headers := object{"Authorization": "Bearer s3cret-1", "cookie": "id=s3cret-2", "X-API-Key": "s3cret-3", "x-note": "seen"}
	ask := object{"url": p.server.URL, "headers": headers}
	done(t, c, "Http.Fetch", ask, "k")
	if want := "Bearer s3cret-1id=s3cret-2s3cret-3seen"; sent.Load() != want {
		t.Errorf("the server was sent %v, want %s", sent.Load(), want)
	}
	p.stop()
	p.begin()
	c = p.dial()
	done(t, c, "Http.Fetch", ask, "k")
	headers["x-note"] = "another"
	refused(t, call(t, c, "Http.Fetch", ask, "k"), 409, "another message")
	if n := asked.Load(); n != 1 {
		t.Errorf("the server got %d requests", n)
	}
	journal := p.Journal(p.t)
	if strings.Contains(journal, "s3cret") || strings.Count(journal, `"[redacted]"`) < 3 || !strings.Contains(journal, `"seen"`) {
		t.Errorf("the journal has %s", journal)
	}
}
