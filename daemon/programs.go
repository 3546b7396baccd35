package daemon

import (
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/code"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Shim has to be the first call of main in every program that runs a Daemon, and of TestMain in every test that has one
// run programs: see host.Shim and code.Shim.
func Shim() {
	host.Shim()
	code.Shim()
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

// hosting is how the kernel has programs run.
func (d *Daemon) hosting() actors.Hosting {
	dir, processes := d.agentsDir(), d.state.Processes.Processes()
	return actors.Hosting{
		Host: d.programs.Host, Connect: func(p *host.Process) (actors.Link, error) { return d.programs.Connect(p) }, Dir: dir,
		Private: []string{d.config.StateDir, d.config.RuntimeDir}, Trusted: trusted(d.config),
		Grace: time.Duration(d.config.Agents.Grace), Policy: restarts(d.config.Agents), Occupied: d.idle.Occupied,
		Hold: d.held(), Confine: d.confine,
		Forget: func() {
			remembered := func(pid int64) bool {
				p := processes.Process(pid)
				return p == nil || p.AgentID != "" // of a forgotten one the name is gone too
			}
			d.programs.Forget(dir, remembered)
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
