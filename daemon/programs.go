package daemon

import (
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/code"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/rmtree"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Shim must be called first in main of every program that runs a Daemon, and in TestMain of every test that runs
// programs: see host.Shim and code.Shim.
func Shim() {
	host.Shim()
	code.Shim()
}

// bounds returns the configured bounds. All agents together may use half of the descriptors; the operator, the journal and
// the programs use the rest.
func bounds(a config.Agents) unixsock.Bounds {
	b := unixsock.Bounds{Connections: a.Connections, Prologues: a.Prologues, Agents: unixsock.DefaultBounds().Agents}
	var limit syscall.Rlimit // the runtime has raised it to the hard limit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		b.Agents = max(1, int(min(limit.Cur, 1<<20)/2))
	}
	return b
}

// hosting returns the options for running programs.
func (d *Daemon) hosting() actors.Hosting {
	dir, processes := d.agentsDir(), d.state.Processes.Processes()
	return actors.Hosting{
		Host: d.programs.Host, Connect: func(p *host.Process) (actors.Link, error) { return d.programs.Connect(p) }, Dir: dir,
		Private: []string{d.config.StateDir, d.config.RuntimeDir}, Trusted: trusted(d.config),
		Grace: time.Duration(d.config.Agents.Grace), Policy: restarts(d.config.Agents), Occupied: d.idle.Occupied,
		Hold: d.isHeld(), Confine: d.confine,
		Forget: func() {
			remembered := func(pid int64) bool {
				p := processes.Process(pid)
				return p == nil || p.AgentID != "" // the name of a forgotten process is forgotten too
			}
			d.programs.Forget(dir, remembered)
		},
		Ended: func(pid int64) {
			d.writable.Delete(pid)
			d.trees.Leave(pid)
			d.prompts.Ended(pid)
			d.execs.Take(pid) // nobody takes what is left
			d.calls.Leave(pid)
			if err := d.blobs.End(pid); err != nil {
				d.log.Warn("blobs of an agent not removed", "pid", pid, "error", err)
			}
		},
	}
}

// agentsDir returns the directory with a directory for each process that has a program.
func (d *Daemon) agentsDir() string { return filepath.Join(d.config.StateDir, "agents") }

// sweep removes what an earlier kernel left of programs: the directories of those that are forgotten, and the temporary files
// of those that a crash has ended.
func (d *Daemon) sweep(known func(pid int64) bool) {
	d.programs.Forget(d.agentsDir(), known)
	if err := rmtree.Dir(filepath.Join(d.agentsDir(), actors.TmpName)); err != nil {
		d.log.Warn("temporary files of an earlier kernel's programs could not be removed", "error", err)
	}
}

// The operator is warned if less is free of the disk of the state directory, on a small one than a part of it.
const (
	leastRoom = 512 << 20
	leastPart = 10
)

// diskTrouble returns a warning if agents, or others, have nearly filled the disk of the state directory; "" if not.
func (d *Daemon) diskTrouble() string {
	free, size, err := blob.Room(d.config.StateDir)
	if err != nil || free >= min(leastRoom, size/leastPart) {
		return ""
	}
	return fmt.Sprintf(`the disk of the state directory is nearly full, %d MiB are free: "pwos home ls" shows what agents have there; the end of one removes its temporary files`, free>>20)
}

// disksTrouble returns a warning for each agent that has most of what it may have of the disk.
func (d *Daemon) disksTrouble() (all []string) {
	for _, p := range d.programs.Processes() {
		if used, most := p.Disk(); used > most/5*4 {
			all = append(all, fmt.Sprintf(`pid %d has %d MiB of the disk in its home and its /tmp, and is ended at %d (disk_bytes of [agents]): "pwos home ls" shows what agents have`, p.PID(), used>>20, most>>20))
		}
	}
	return all
}

// trusted returns the files that determine which keys are the operator's, and the kernel's configuration.
func trusted(cfg config.Config) []string {
	rules, more := policy.Paths(cfg.File)
	files := []string{cfg.File, rules, more, unixsock.AuthorizedKeys(cfg.File), cfg.AuthorizedKeys, cfg.TrustedKeys(), cfg.Crypto.Identity}
	return slices.DeleteFunc(files, func(path string) bool { return !filepath.IsAbs(path) })
}

// restarts returns the host's default restart policy with the configured pauses.
func restarts(a config.Agents) func(host.Restart) host.Policy {
	return func(r host.Restart) host.Policy {
		p := host.DefaultPolicy(r)
		p.MinDelay = time.Duration(a.RestartDelay)
		p.MaxDelay = max(p.MinDelay, p.MaxDelay)
		return p
	}
}
