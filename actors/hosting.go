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

// Hosting configures how the programs of agents run. With the zero value no program can be started.
type Hosting struct {
	// Host returns the host that runs programs. It is called before the first program starts.
	Host func() (*host.Host, error)
	// Connect runs the prologue with a program and returns its channel, or an error if the program ended first.
	Connect func(*host.Process) (Link, error)
	// Dir has a directory for each process with a program.
	Dir string
	// Private are the kernel's own directories: no agent works in one of them, or in a directory above one.
	Private []string
	// Trusted are files that the kernel trusts, which may not exist: no agent works in a directory above one, or above a
	// link on the path to one.
	Trusted []string
	// Grace is the time between SIGTERM and SIGKILL.
	Grace time.Duration
	// Policy decides what happens after the end of a program; nil means host.DefaultPolicy.
	Policy func(host.Restart) host.Policy
	// Hold prevents that programs of the previous run of the kernel are started. Their processes stay, and can be ended.
	Hold bool
	// Forget is called after many agents have ended, to remove the directories of forgotten processes. Two calls may
	// overlap. It may be nil.
	Forget func()
	// Ended is called when the program of a process has ended for good, with its PID. It may be nil.
	Ended func(pid int64)
	// Confine adds to a program's command what the kernel's directories and settings require, and its secrets. It may be
	// nil.
	Confine func(*host.Command, *schema.Program) error
	// Occupied is called when the first agent with a program starts and when the last one ends. It may be nil.
	Occupied func(bool)
}

// startTime bounds a start, which fails after that time.
const startTime = 30 * time.Second

// sharedHost is what all agents share: the host, and the bound on starts at a time.
type sharedHost struct {
	Hosting
	starts chan struct{}
}

func newSharedHost(h Hosting) *sharedHost {
	if h.Policy == nil {
		h.Policy = host.DefaultPolicy
	}
	if h.Forget == nil {
		h.Forget = func() {}
	}
	if h.Ended == nil {
		h.Ended = func(int64) {}
	}
	if h.Occupied == nil {
		h.Occupied = func(bool) {}
	}
	return &sharedHost{Hosting: h, starts: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
}

// errLate refuses a program that has used up its wall_seconds.
var errLate = errors.New("the wall_seconds of its budget are over")

// start starts a program in its turn, unless its deadline has passed.
func (h *sharedHost) start(p *kernel.Program, deadline time.Time) (*host.Process, error) {
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

// LogName is the file in a process's directory for its program's standard error.
const LogName = "stderr.log"

// TmpName is the directory in Hosting.Dir that has the temporary files of running programs.
const TmpName = "tmp"

// command returns the host's command for a program. The log is outside of the working directory, which the program may
// write.
func (h *sharedHost) command(p *kernel.Program) (host.Command, error) {
	folder := filepath.Join(h.Dir, strconv.FormatInt(p.PID, 10))
	c := Confined(&p.Spec)
	c.Dir, c.Channel, c.Limits = filepath.Join(folder, "work"), host.Channel(text(p.Spec.Channel)), host.NewLimits(p.Spec.Limits)
	c.Stdio, c.Grace, c.Stderr, c.Sign, c.Umask = text(p.Spec.Stdio), h.Grace, text(p.Spec.Stderr), text(p.Spec.Sign), p.Spec.Umask
	c.PID, c.AgentID, c.Log = p.PID, p.AgentID, host.LogOptions{Path: filepath.Join(folder, LogName)}
	own := c.Dir
	if p.Spec.Cwd != nil {
		c.Dir, own = filepath.Clean(*p.Spec.Cwd), folder
		c.ReadOnly = slices.Contains(c.Read, c.Dir)
		if err := host.Apart(c.Dir, h.Private, h.Trusted); err != nil {
			return c, err
		}
	}
	if err := os.MkdirAll(own, 0o700); err != nil {
		return c, fmt.Errorf("make directory of agent %d: %w", p.PID, errors.Unwrap(err)) // the client must not see the path
	}
	if p.Spec.Cwd == nil {
		c.Dir = host.Canonical(c.Dir)
		c.Places = []host.Place{{Target: c.Dir, Write: true}}
	}
	tmp := filepath.Join(host.Canonical(h.Dir), TmpName)
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return c, fmt.Errorf("make directory for temporary files: %w", errors.Unwrap(err))
	}
	c.Tmp = filepath.Join(tmp, strconv.FormatInt(p.PID, 10))
	return c, nil
}

// Confined returns what a program executes and how it is confined, without its directories.
func Confined(p *schema.Program) host.Command {
	c := host.Command{
		Argv: p.Command, Env: p.Env, Sandbox: host.Mode(p.Sandbox.Named()), Net: host.Net(p.Sandbox.Network()), Hold: p.Held(),
	}
	if s := p.Sandbox; s != nil {
		c.Read, c.Write, c.Hide, c.Copies = s.Read, s.Write, s.Hide, s.Copies
		c.AllowGaps = s.AllowGaps != nil && *s.AllowGaps
	}
	return c
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
