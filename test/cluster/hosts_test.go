package cluster_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
)

// rig is a kernel whose answers wait for its bus, with the hosts that may lead it.
type rig struct {
	t       *testing.T
	dir     string
	hosts   []*host
	nodes   []*node
	lease   time.Duration
	history *history
}

// host is a machine with a daemon of the kernel.
type host struct {
	index   int
	dir     string
	key     *access.HostKey
	daemon  testkit.Daemon
	process *testkit.Process
	started time.Time
	links   []*link // to each node
	down    bool    // it is not started again
}

func (h *host) socket() string   { return filepath.Join(h.dir, "r", "kernel.sock") }
func (h *host) stateDir() string { return filepath.Join(h.dir, "s") }
func (h *host) journal() string  { return filepath.Join(h.stateDir(), "journal") }

func (h *host) start(t *testing.T) { h.process, h.started = h.daemon.Launch(t), time.Now() }

func (h *host) ended() bool {
	select {
	case <-h.process.Ended():
		return true
	default:
		return false
	}
}

// signal sends the daemon a signal, unless it has ended.
func (h *host) signal(t *testing.T, signal os.Signal) {
	if !h.ended() {
		h.process.Signal(t, signal)
	}
}

func (h *host) kill(t *testing.T) { h.process.End(t, syscall.SIGKILL) }

// setup says how a rig is made.
type setup struct {
	hosts, nodes int
	lease        time.Duration
	daemon       string // the program of the hosts
	bus          string // that of the nodes; "": pwos-bus
}

func newRig(t *testing.T, s setup) *rig {
	t.Helper()
	r := &rig{t: t, dir: testkit.Dir(t), lease: s.lease, history: newHistory()}
	members := ""
	for i := range s.hosts {
		h := &host{index: i, dir: filepath.Join(r.dir, string(rune('a'+i)))}
		testkit.Must(t, os.MkdirAll(h.stateDir(), 0o700))
		h.key = testkit.Value(access.OpenHostKey(h.stateDir()))(t)
		options := `kernel="alpha"`
		if i > 0 {
			options += ",standby"
		}
		members += options + " " + h.key.Public() + "\n"
		h.daemon = testkit.Daemon{Command: []string{s.daemon}, Dir: h.dir, Log: filepath.Join(h.dir, "log")}
		r.hosts = append(r.hosts, h)
	}
	testkit.WriteFile(t, r.members(), members)
	r.newBus(s.nodes, cmp.Or(s.bus, testkit.Program(t, "pwos-bus")))
	for _, h := range r.hosts {
		var bus []string
		for _, n := range r.nodes {
			l := newLink(t, n.address)
			h.links, bus = append(h.links, l), append(bus, "nats://"+l.address())
		}
		settings := fmt.Sprintf("[cluster]\nname = \"alpha\"\nbus = %q\nmembers = %q\nacknowledge = \"quorum\"\nreplicas = %d\nlease = %q\n",
			strings.Join(bus, ","), r.members(), s.nodes, s.lease)
		config := filepath.Join(h.dir, "config.toml")
		if h.index == 0 { // a standby never begins a record
			testkit.WriteFile(t, config, settings)
			h.start(t)
			h.process.Await(t)
		}
		if s.hosts > 1 {
			testkit.WriteFile(t, config, settings+"standby = true\n")
		}
		if h.index > 0 {
			h.start(t)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, h := range r.hosts {
				t.Logf("the output of host %d:\n%s", h.index, tail(h.process.Output()))
			}
		}
	})
	return r
}

func tail(text string) string { return text[max(0, len(text)-20000):] }

func (r *rig) members() string { return filepath.Join(r.dir, "members") }

// restartWait is how long a service manager waits before it starts a daemon again.
const restartWait = 200 * time.Millisecond

// supervise starts each daemon that has ended, as a service manager does.
func (r *rig) supervise() {
	r.t.Helper()
	for _, h := range r.hosts {
		if h.ended() && !h.down && time.Since(h.started) > restartWait {
			h.process.End(r.t, syscall.SIGKILL) // for what the process has left open here
			h.start(r.t)
		}
	}
	testkit.Must(r.t, r.diedAlone())
}

// await supervises until a condition holds, and reports whether it does before the limit.
func (r *rig) await(limit time.Duration, holds func() bool) bool {
	r.t.Helper()
	for end := time.Now().Add(limit); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
		r.supervise()
	}
	return true
}

// leader is the host that has acknowledged last, and other the one that might instead; nil: there is none.
func (r *rig) leader() *host { return r.hosts[r.history.leader.Load()] }

func (r *rig) other(than *host) *host {
	for _, h := range r.hosts {
		if h != than {
			return h
		}
	}
	return nil
}

// acknowledged returns a condition: host acknowledges that many more sets, nil: any of them does.
func (r *rig) acknowledged(by *host, more int64) func() bool {
	count := &r.history.acknowledged
	if by != nil {
		count = &r.history.by[by.index]
	}
	target := count.Load() + more
	return func() bool { return count.Load() >= target }
}

// healed waits until the cluster works again.
func (r *rig) healed() {
	r.t.Helper()
	if !r.await(2*testkit.Patience, r.acknowledged(nil, 20)) {
		r.t.Fatalf("the cluster does not work again: %d acknowledged", r.history.acknowledged.Load())
	}
}

// stop ends the hosts cleanly, the standby first: it must not lead again.
func (r *rig) stop() {
	r.t.Helper()
	for _, h := range []*host{r.other(r.leader()), r.leader()} {
		if h != nil {
			h.down = true
			h.process.End(r.t, syscall.SIGTERM)
		}
	}
}
