package actors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Hosting is how the programs of agents are run. Of the zero value every program is one that could not be started.
type Hosting struct {
	// Host returns what runs programs. It is first called when there is one to be run.
	Host func() (*host.Host, error)
	// Connect leads a program through the prologue and returns its channel, or an error where it ended before.
	Connect func(*host.Process) (Link, error)
	// Dir holds a folder for each process with a program.
	Dir string
	// Private are the kernel's own directories: no agent works in one of them, nor in one that they lie in.
	Private []string
	// Trusted are the files that the kernel believes, whether they are there or not: no agent works in a directory that one
	// of them lies below, or a link on the way to one.
	Trusted []string
	// Grace is the time between TERM and KILL.
	Grace time.Duration
	// Policy says what becomes of an agent whose program ended; nil means host.DefaultPolicy.
	Policy func(host.Restart) host.Policy
	// Hold keeps the programs of the kernel's last life from being started. Their processes stay, and can be ended.
	Hold bool
	// Forget is called when many agents have ended since the last time: there may be folders of some that nobody remembers.
	// Two calls may overlap; it may be nil.
	Forget func()
	// Confine adds to the command of a program what the kernel's own places and settings ask for, and its secrets; it may be nil.
	Confine func(*host.Command, *schema.Program) error
	// Occupied is told when there begin to be agents with programs, and when there are none any more; it may be nil.
	Occupied func(bool)
}

// startTime bounds a start: what takes longer is taken for failed.
const startTime = 30 * time.Second

// hosting is what the agents have in common: their goroutines, and how many may start at once.
type hosting struct {
	Hosting
	starts chan struct{}
}

func newHosting(h Hosting) *hosting {
	if h.Policy == nil {
		h.Policy = host.DefaultPolicy
	}
	if h.Forget == nil {
		h.Forget = func() {}
	}
	if h.Occupied == nil {
		h.Occupied = func(bool) {}
	}
	return &hosting{Hosting: h, starts: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
}

// errLate is why a program is not started whose budget of time is used up.
var errLate = errors.New("the wall_seconds of its budget are over")

// start starts a program, in its turn, unless its deadline is over: what may call no more has no reason to go on.
func (h *hosting) start(p *kernel.Program, deadline time.Time) (*host.Process, error) {
	if h.Host == nil {
		return nil, errors.New("this kernel hosts no programs")
	}
	h.starts <- struct{}{}
	defer func() { <-h.starts }()
	programs, err := h.Host()
	if err != nil {
		return nil, err
	}
	command, err := h.command(p)
	if err == nil && h.Confine != nil {
		err = h.Confine(&command, &p.Spec)
	}
	if err != nil {
		return nil, err
	}
	if !deadline.IsZero() && !time.Now().Before(deadline) {
		return nil, errLate
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return programs.Start(ctx, command)
}

// LogName is the file in a process's folder that its program's standard error goes to.
const LogName = "stderr.log"

// command is what the host is asked for. The log lies beside the working directory, out of the program's reach.
func (h *hosting) command(p *kernel.Program) (host.Command, error) {
	folder := filepath.Join(h.Dir, strconv.FormatInt(p.PID, 10))
	c := host.Command{
		Argv: p.Spec.Command, Env: p.Spec.Env, Dir: filepath.Join(folder, "work"),
		Channel: host.Channel(text(p.Spec.Channel)), Sandbox: host.Mode(p.Spec.Sandbox.Named()), Net: host.Net(p.Spec.Sandbox.Network()), Limits: limits(p.Spec.Limits),
		TTY: text(p.Spec.TTY), PID: p.PID, AgentID: p.AgentID, Log: host.LogOptions{Path: filepath.Join(folder, LogName)},
	}
	if s := p.Spec.Sandbox; s != nil {
		c.Read, c.Write, c.Hide = s.Read, s.Write, s.Hide
		c.AllowGaps = s.AllowGaps != nil && *s.AllowGaps
	}
	own := c.Dir
	if p.Spec.Cwd != nil {
		c.Dir, own = filepath.Clean(*p.Spec.Cwd), folder
		c.ReadOnly = slices.Contains(c.Read, c.Dir)
		if err := h.apart(c.Dir); err != nil {
			return c, err
		}
	}
	if err := os.MkdirAll(own, 0o700); err != nil {
		return c, fmt.Errorf("make directory of agent %d: %w", p.PID, errors.Unwrap(err)) // the path is nobody's business
	}
	switch {
	case p.Spec.Cwd == nil:
		c.Dir = canonical(c.Dir)
		c.Places = []host.Place{{Target: c.Dir, Write: true}}
	case c.ReadOnly:
		c.Tmp = filepath.Join(canonical(folder), "tmp")
		c.Places = []host.Place{{Target: c.Tmp, Write: true}}
	}
	return c, nil
}

func limits(l *schema.Limits) (limits host.Limits) {
	if l == nil {
		return limits
	}
	for _, limit := range []struct {
		to   *int64
		from *int64
	}{
		{&limits.CPUSeconds, l.CPUSeconds},
		{&limits.MemoryBytes, l.MemoryBytes},
		{&limits.OpenFiles, l.OpenFiles},
		{&limits.WallSeconds, l.WallSeconds},
		{&limits.Processes, l.Processes},
	} {
		if limit.from != nil {
			*limit.to = *limit.from
		}
	}
	return limits
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
