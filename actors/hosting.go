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
	"strings"
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

// command returns the host's command for a program. The log is outside of the working directory, which the program may
// write.
func (h *sharedHost) command(p *kernel.Program) (host.Command, error) {
	folder := filepath.Join(h.Dir, strconv.FormatInt(p.PID, 10))
	c := host.Command{
		Argv: p.Spec.Command, Env: p.Spec.Env, Dir: filepath.Join(folder, "work"),
		Channel: host.Channel(text(p.Spec.Channel)), Sandbox: host.Mode(p.Spec.Sandbox.Named()), Net: host.Net(p.Spec.Sandbox.Network()), Limits: limits(p.Spec.Limits),
		TTY: text(p.Spec.TTY), Stderr: text(p.Spec.Stderr), PID: p.PID, AgentID: p.AgentID, Log: host.LogOptions{Path: filepath.Join(folder, LogName)},
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
		return c, fmt.Errorf("make directory of agent %d: %w", p.PID, errors.Unwrap(err)) // the client must not see the path
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

var (
	// errPrivate refuses a working directory in which an agent could rewrite the journal, or replace the kernel.
	errPrivate = errors.New("the working directory is in one of the kernel's own directories, or contains one: choose another")

	// errLink refuses a working directory that others can replace by a link.
	errLink = errors.New("the working directory is reached through a symbolic link: name the directory that the link leads to")
)

// apart refuses a working directory, absolute and clean, that overlaps the kernel's own directories. It is checked before
// each start, since the directory may have changed. A sandbox follows no link, so a later link has no effect.
func (h *sharedHost) apart(dir string) error {
	switch place, err := filepath.EvalSymlinks(dir); {
	case err != nil:
		return fmt.Errorf("find working directory: %w", host.ErrNotFound)
	case place != dir:
		return errLink
	}
	for _, private := range h.Private {
		own, err := filepath.EvalSymlinks(private)
		if err != nil {
			return fmt.Errorf("find the kernel's own directories: %w", errors.Unwrap(err))
		}
		if within(dir, own) || leadsThrough(private, dir) {
			return errPrivate
		}
	}
	for _, file := range h.Trusted {
		if leadsThrough(file, dir) {
			return fmt.Errorf("the working directory contains %s, which the kernel trusts, or a link to it: choose another", file)
		}
	}
	return nil
}

// canonical resolves the symlinks in the existing part of a path.
func canonical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || filepath.Dir(path) == path {
		return real
	}
	return filepath.Join(canonical(filepath.Dir(path)), filepath.Base(path))
}

// leadsThrough reports whether the resolution of an absolute path passes through dir: dir contains the file, a directory
// above it, or a symbolic link on the path. It is true for a path with a link cycle.
func leadsThrough(path, dir string) bool {
	const most = 255 // links, as for EvalSymlinks
	at, rest := string(filepath.Separator), strings.Split(filepath.Clean(path), string(filepath.Separator))
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		if within(next, dir) {
			return true
		}
		target, err := os.Readlink(next)
		if err != nil { // not a link
			at = next
			continue
		}
		if links++; links > most {
			return true
		}
		if filepath.IsAbs(target) {
			at = string(filepath.Separator)
		}
		rest = append(strings.Split(target, string(filepath.Separator)), rest...)
	}
	return false
}

// within reports whether a path is dir, or is in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
