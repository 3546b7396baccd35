package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// Each frame is answered in its own dialect on either socket; only the prologue has the socket's dialect.
func TestBothSocketsBothDialects(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	frames := map[schema.Dialect]string{
		schema.OsMessage: pings(1),
		schema.OsEvent:   `{"type":"query","name":"Syscall.Ping","payload":{"payload":0},"metadata":{"id":"p0","timestamp":0}}` + "\n",
	}
	for path, first := range map[string]schema.Dialect{r.KernelSocket: schema.OsMessage, r.EventsSocket: schema.OsEvent} {
		p := connect(t, path)
		offer := p.next()
		if offer.Dialect != first || offer.Type != "Syscall.Authenticate" {
			t.Errorf("%s begins with %s in %v", path, offer.Type, offer.Dialect)
		}
		p.send(`{"kind":"reply","type":"Syscall.Authenticate","data":{}}` + "\n")
		for dialect, frame := range frames {
			p.send(frame)
			if m := p.next(); m.Dialect != dialect || string(m.Data) != `{"payload":0}` || m.Meta.Causation != "p0" {
				t.Errorf("%s: got %v %s %s caused by %q, want a reply in %v", path, m.Dialect, m.Kind, m.Data, m.Meta.Causation, dialect)
			}
		}
	}
}

// limits.line_bytes is the limit of kernel.sock; the limit of events.sock is never lower than its default.
func TestLineLimits(t *testing.T) {
	t.Parallel()
	tests := []struct{ limit, kernel, events int }{
		{schema.MaxLine, schema.MaxLine, schema.MaxEventLine},
		{schema.MaxLine + 7, schema.MaxLine + 7, schema.MaxEventLine},
		{schema.MaxEventLine + 7, schema.MaxEventLine + 7, schema.MaxEventLine + 7},
	}
	for _, tt := range tests {
		t.Run(strconv.Itoa(tt.limit), func(t *testing.T) {
			t.Parallel()
			r := start(t, func(c *config.Config) { c.Limits.LineBytes = tt.limit })
			for path, limit := range map[string]int{r.KernelSocket: tt.kernel, r.EventsSocket: tt.events} {
				p := dial(t, path)
				p.send(lineOf(limit))
				if m := p.next(); m.Kind != schema.KindReply {
					t.Errorf("%s: a line of %d bytes got %s %.200s", path, limit, m.Kind, m.Data)
				}
				p.send(lineOf(limit + 1))
				if m := p.next(); m.Kind != schema.KindError || !strings.Contains(string(m.Data), "maximum line length") {
					t.Errorf("%s: a line of %d bytes got %s %.200s", path, limit+1, m.Kind, m.Data)
				}
				p.send(pings(1))
				p.wantPing(0)
			}
		})
	}
}

// lineOf returns a ping of exactly size bytes and the '
// '.
func lineOf(size int) string {
	const frame = `{"kind":"query","type":"Syscall.Ping","data":{"payload":"%s"},"metadata":{"id":"long","timestamp":0}}`
	return fmt.Sprintf(frame+"\n", strings.Repeat("x", size-len(frame)+len("%s")))
}

func TestPlacesArePrivate(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	want := map[string]os.FileMode{
		r.Dir:                                   os.ModeDir | 0o700,
		filepath.Join(filepath.Dir(r.Dir), "s"): os.ModeDir | 0o700,
		r.KernelSocket:                          os.ModeSocket | 0o600,
		r.EventsSocket:                          os.ModeSocket | 0o600,
		r.Lock:                                  0o600,
	}
	for path, mode := range want {
		info, err := os.Lstat(path)
		testkit.Must(t, err)
		if info.Mode() != mode {
			t.Errorf("%s is %v, want %v", path, info.Mode(), mode)
		}
	}
	text, err := os.ReadFile(r.Lock)
	testkit.Must(t, err)
	if want := strconv.Itoa(os.Getpid()) + "\n"; string(text) != want {
		t.Errorf("the lock says %q, want %q", text, want)
	}
}
