package daemon_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// faulty is the kernel's own domain with a fault.
type faulty struct {
	*self.Domain
	decide, apply string // the types of calls that fail
}

func (f *faulty) Decide(call *kernel.Call) (kernel.Result, error) {
	if call.Message.Type == f.decide {
		panic("faulty decision")
	}
	return f.Domain.Decide(call)
}

func (f *faulty) Apply(call *kernel.Call) {
	if call.Message.Type == f.apply {
		panic("faulty application")
	}
}

const echoFrame = `{"kind":"command","type":"Syscall.Echo","data":{"message":"top secret"},"metadata":{"id":"e","timestamp":0}}` + "\n"

// A state that may be wrong ends the daemon cleanly with an error: callers are answered, resources released. A failure that
// affects only one caller does not.
func TestFailingDomain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		domain *faulty
		fails  bool
	}{
		"Decide panics": {&faulty{self.New(nil), "Syscall.Echo", ""}, false},
		"Apply panics":  {&faulty{self.New(nil), "", "Syscall.Echo"}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := testkit.Dir(t)
			cfg, log := settingsIn(dir), &testkit.Buffer{}
			d := daemon.New(cfg, nil, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
			d.SetDomain(schema.Kernel, tt.domain)
			testkit.Must(t, d.Open(testkit.Context(t)))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ran := make(chan error, 1)
			go func() { ran <- d.Run(ctx) }()

			p := dial(t, filepath.Join(cfg.RuntimeDir, "kernel.sock"))
			p.send(echoFrame)
			if m := p.next(); m.Kind != schema.KindError || !strings.Contains(string(m.Data), `"code":500`) || strings.Contains(string(m.Data), "faulty") {
				t.Errorf("got %s %s, want a 500 without internal text", m.Kind, m.Data)
			}
			if !tt.fails {
				p.send(pings(1))
				p.wantPing(0)
				cancel()
			}
			if err := testkit.Receive(t, ran, "the daemon's end"); (err != nil) != tt.fails {
				t.Errorf("Run returns %v", err)
			}
			p.wantEnd()
			testkit.Must(t, d.Close())
			(&running{Places: unixsock.PlacesIn(cfg.RuntimeDir)}).wantGone(t)
			if text := log.String(); !strings.Contains(text, "failure_test.go") || strings.Contains(text, "top secret") {
				t.Errorf("the log has no stack, or a payload:\n%s", text)
			}
		})
	}
}
