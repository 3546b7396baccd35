package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/code"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Shim has to be the first call of main in every program that runs a Daemon, and of TestMain in every test that has one
// run programs: see host.Shim and code.Shim.
func Shim() {
	host.Shim()
	code.Shim()
}

// programs runs the programs of agents. It is opened for the first of them: a kernel without any starts no guard and looks at
// no processes.
type programs struct {
	instance string
	means    host.Means // to confine them with
	user     *host.User // whom they run as; nil: as this process does
	limit    int
	log      *slog.Logger

	watched sync.WaitGroup // what waits for the end of a program

	mu     sync.Mutex
	closed bool
	opened atomic.Pointer[host.Host]
}

// host opens the host, or returns the one that is open.
func (p *programs) host() (*host.Host, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.opened.Load(); h != nil {
		return h, nil
	}
	if p.closed {
		return nil, host.ErrClosed
	}
	h, err := host.New(host.Options{Instance: p.instance, Means: &p.means, User: p.user})
	if err != nil {
		return nil, err
	}
	p.opened.Store(h)
	if h.Level() == "none" {
		p.log.Warn("AGENTS ARE NOT CONFINED: this system has no sandbox for them; sandbox=strict refuses to start", "sandbox", h.Level())
	}
	p.log.Info("programs of agents are hosted", "sandbox", h.Level(), "sandbox_gaps", h.Gaps())
	return h, nil
}

// close takes down whatever is left.
func (p *programs) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if h := p.opened.Load(); h != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the kernel has ended them in good order before; what is left gets no grace
		h.Close(ctx, 0)
	}
	p.watched.Wait()
}

// bounds are those of the configuration. All agents together may take half of the descriptors: the rest is the operator's,
// the journal's and that of the programs.
func bounds(a config.Agents) unixsock.Bounds {
	b := unixsock.Bounds{Connections: a.Connections, Prologues: a.Prologues, Agents: unixsock.DefaultBounds().Agents}
	var limit syscall.Rlimit // the runtime has raised it to the hard one
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		b.Agents = max(1, int(min(limit.Cur, 1<<20)/2))
	}
	return b
}

// identify finds out who is at the other end of a connection: a process of a hosted program, or of anything that it
// started, is that agent, and who cannot be told is nobody (PROTOCOL 4). So is the agent of another kernel: to be the
// operator here would free it of all that binds it there.
func (p *programs) identify(conn net.Conn) (unixsock.Peer, error) {
	peer, err := unixsock.PeerOf(conn)
	// Programs that run as another user are let in as what they are, and nobody else of that user.
	foreign := errors.Is(err, fault.AuthPeer) && p.user != nil && peer.UID == p.user.UID
	if err != nil && !foreign {
		return peer, err
	}
	refusal := err
	raw, err := conn.(syscall.Conn).SyscallConn() // PeerOf has looked
	if err != nil {
		return peer, fmt.Errorf("find owner of process %d: %w", peer.PID, err)
	}
	var owner *host.Process
	if h := p.opened.Load(); h != nil {
		owner, err = h.Peer(raw)
	} else {
		err = host.Unhosted(raw)
	}
	if err != nil {
		return peer, fmt.Errorf("find owner of process %d: %w", peer.PID, err)
	}
	switch {
	case owner != nil:
		peer.Agent = owner.PID()
	case foreign:
		return peer, refusal
	}
	return peer, nil
}

// suspend stops an agent for a while that connects faster than its connections can be refused: others would wait behind them
// in the listen queue.
func (p *programs) suspend(agent int64) {
	h := p.opened.Load()
	if h == nil {
		return
	}
	for _, program := range h.Processes() {
		if program.PID() == agent {
			p.log.Warn("agent is suspended: it floods the kernel with connections", "agent", agent)
			program.Suspend()
		}
	}
}

// hosting is how the kernel has programs run.
func (d *Daemon) hosting() actors.Hosting {
	dir, processes := d.agentsDir(), d.state.processes.Processes()
	return actors.Hosting{
		Host: d.programs.host, Connect: d.programs.connect, Dir: dir,
		Private: []string{d.config.StateDir, d.config.RuntimeDir}, Trusted: trusted(d.config),
		Grace: time.Duration(d.config.Agents.Grace), Policy: restarts(d.config.Agents), Occupied: d.idle.occupied,
		Hold: d.held(), Confine: d.confine,
		Forget: func() {
			remembered := func(pid int64) bool {
				p := processes.Process(pid)
				return p == nil || p.AgentID != "" // of a forgotten one the name is gone too
			}
			d.programs.forget(dir, remembered)
			if err := d.blobs.Drop(remembered); err != nil {
				d.log.Warn("blobs of agents that are forgotten", "error", err)
			}
		},
	}
}

// agentsDir holds a folder for each process with a program.
func (d *Daemon) agentsDir() string { return filepath.Join(d.config.StateDir, "agents") }

// trusted are the files that say who is the operator, and what the kernel does.
func trusted(cfg config.Config) []string {
	rules, more := policy.Paths(cfg.File)
	files := []string{cfg.File, rules, more, unixsock.AuthorizedKeys(cfg.File), cfg.AuthorizedKeys, cfg.TrustedKeys(), cfg.Crypto.Identity}
	return slices.DeleteFunc(files, func(path string) bool { return !filepath.IsAbs(path) })
}

// restarts is the host's own policy, with the pauses of the configuration.
func restarts(a config.Agents) func(host.Restart) host.Policy {
	return func(r host.Restart) host.Policy {
		p := host.DefaultPolicy(r)
		p.MinDelay = time.Duration(a.RestartDelay)
		p.MaxDelay = max(p.MinDelay, p.MaxDelay)
		return p
	}
}

// forget removes the folders of agents that the kernel has forgotten.
func (p *programs) forget(dir string, remembered func(pid int64) bool) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return // there never was an agent
	}
	for _, f := range folders {
		pid, err := strconv.ParseInt(f.Name(), 10, 64)
		if err != nil || remembered(pid) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
			p.log.Warn("folder of an agent that is forgotten", "pid", pid, "error", err)
		}
	}
}
