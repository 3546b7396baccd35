package process

import (
	"slices"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// States of a hosted process while its program does not run, runs, and is in quarantine (PROTOCOL 6).
const (
	running = "RUNNING"
	blocked = "BLOCKED"
)

// Unknown is the reason of an end that was not observed: the kernel died before it could record one.
const Unknown = "unknown"

// program is what a living process runs: how to start it, and its count of faults. It is immutable.
type program struct {
	Spec   schema.Program `json:"spec"`
	Faults int64          `json:"faults,omitzero"` // in a row
	Quick  int64          `json:"quick,omitzero"`  // early ends in a row
}

// Hosted is a process with a program that recovery must handle: it is alive, or its program is not known to have
// ended.
type Hosted struct {
	kernel.Program
	State   string
	Blocked int64 // the tick until which it is blocked
	Begun   bool  // an end of its program is recorded
}

// Ended reports whether the process has ended, so that its program can only be recorded as ended.
func (h *Hosted) Ended() bool { return h.State == terminated }

// Ran reports whether its program was last recorded as running.
func (h *Hosted) Ran() bool { return h.State == running }

// Unsettled reports whether it is unknown what happened to its program: it was recorded as running, or was about to
// start for the first time.
func (h *Hosted) Unsettled() bool { return h.State == running || h.State == ready && !h.Begun }

// Hosted returns the processes with programs that recovery must handle, by PID. Only the owner of the domain may call
// it.
func (d *Domain) Hosted() []Hosted {
	var list []Hosted
	d.table.processes.Scan(func(pid int64, p *schema.Descriptor) bool {
		if h := d.programOf(p); h != nil {
			list = append(list, *h)
		}
		return true
	})
	return list
}

func (d *Domain) programOf(p *schema.Descriptor) *Hosted {
	h := &Hosted{Program: kernel.Program{PID: p.PID, AgentID: p.AgentID, Origin: p.Origin}, State: p.State, Begun: p.Exit != nil}
	if p.Restarts != nil {
		h.Restarts = *p.Restarts
	}
	if p.BlockedUntilTick != nil {
		h.Blocked = *p.BlockedUntilTick
	}
	if run, ok := d.table.programs.Get(p.PID); ok {
		h.Spec, h.Faults, h.Quick = run.Spec, run.Faults, run.Quick
		return h
	}
	// It has ended: whether its program has ended, or was ever started, must be recorded.
	if p.OSPID != nil || p.Command != nil && p.Exit == nil {
		return h
	}
	return nil
}

// stop is the job that ends processes: those of their programs that may run must end.
func (d *Domain) stop(pids []int64) *kernel.Work {
	return stopping(d.withPrograms(pids))
}

// stopping ends programs; nil if there are none.
func stopping(programs []int64) *kernel.Work {
	if programs == nil {
		return nil
	}
	return &kernel.Work{Stop: programs}
}

// withPrograms returns those of pids that may have a program.
func (d *Domain) withPrograms(pids []int64) (list []int64) {
	for _, pid := range pids {
		if p, ok := d.table.processes.Get(pid); ok && p.Command != nil {
			list = append(list, pid)
		}
	}
	return list
}

// checkProgram refuses an invalid program, and one with fewer limits than its spawner's: a program that may choose
// where to write, or to be unlimited, is not limited (PROTOCOL 5).
func (d *Domain) checkProgram(call *kernel.Call, p *schema.Program) *fault.Fault {
	if p.Command == nil {
		return withoutCommand(p)
	}
	if len(p.Command) == 0 || p.Command[0] == "" {
		return kernel.Invalid("command", "must name a program")
	}
	if slices.ContainsFunc(p.Command, nul) {
		return kernel.Invalid("command", "must not contain the character NUL")
	}
	for name, value := range p.Env {
		if name == "" || strings.Contains(name, "=") || nul(name) || nul(value) {
			return kernel.Invalid("env", "cannot set a variable %q: a name is not empty and has no =, and neither it nor the value has a NUL", name)
		}
	}
	for name, key := range p.Secrets {
		if _, twice := p.Env[name]; twice || name == "" || strings.Contains(name, "=") || nul(name) || !strings.HasPrefix(key, "vault/") || nul(key) {
			return kernel.Invalid("secrets", "cannot set a variable %q: it has a name that env does not set, and the key of a sealed value such as vault/token", name)
		}
	}
	if err := checkSandbox(p.Sandbox); err != nil {
		return err
	}
	if err := checkUpstream(p); err != nil {
		return err
	}
	if err := checkLogins(p); err != nil {
		return err
	}
	if err := checkPublish(p); err != nil {
		return err
	}
	if p.Cwd != nil && (!strings.HasPrefix(*p.Cwd, "/") || nul(*p.Cwd)) {
		return kernel.Invalid("cwd", "must be an absolute path")
	}
	if p.Stderr != nil && (!strings.HasPrefix(*p.Stderr, "/") || nul(*p.Stderr)) {
		return kernel.Invalid("stderr", "must be an absolute path")
	}
	if p.Sign != nil && (!strings.HasPrefix(*p.Sign, "/") || nul(*p.Sign)) {
		return kernel.Invalid("sign", "must be an absolute path")
	}
	if p.Snapshot != nil && p.Cwd == nil {
		return kernel.Invalid("snapshot", "is a copy of cwd: name the directory too")
	}
	if p.User != nil && (nul(*p.User) || strings.ContainsAny(*p.User, ":/\n")) {
		return kernel.Invalid("user", "must be the name or the number of a user")
	}
	if err := checkStdio(p); err != nil {
		return err
	}
	if call.PID == kernel.Operator {
		return nil
	}
	if p.Stdio != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not pass on standard input and output", call.PID).WithFix("only the operator may; leave out stdio")
	}
	if p.Stderr != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not name a file for standard error", call.PID).WithFix("only the operator may; leave out stderr")
	}
	if p.Sign != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not name an ssh-agent", call.PID).WithFix("only the operator may; leave out sign")
	}
	if p.Secrets != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not name secrets", call.PID).WithFix("only the operator may; leave out secrets")
	}
	if p.Logins != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not name logins", call.PID).WithFix("only the operator may; leave out logins, and it has those of its spawner")
	}
	if p.Upstream != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not name an upstream", call.PID).WithFix("only the operator may; leave out upstream")
	}
	if p.Publish != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not publish a port", call.PID).WithFix("only the operator may; leave out publish")
	}
	var own schema.Program // of a spawner that has no program: it has no limits
	if run, ok := d.table.programs.Get(call.PID); ok {
		own = run.Spec
	}
	if p.Snapshot != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not name a snapshot", call.PID).WithFix("only the operator may; leave out snapshot")
	}
	if p.Cwd != nil && (own.Cwd == nil || *p.Cwd != *own.Cwd) {
		return fault.CapabilityOperatorOnly.New("pid %d may not choose cwd", call.PID).
			WithFix("name the spawner's own, or leave it out, and the program gets a directory of its own")
	}
	if p.User != nil && *p.User != said(own.User, "") {
		return fault.CapabilityOperatorOnly.New("pid %d may not choose the user of a program", call.PID).
			WithFix("only the operator may; leave it out, and the program runs as the user that the agent runs as")
	}
	if err := looser(call.PID, own.Sandbox, p.Sandbox); err != nil {
		return err
	}
	if paths := readOnly(&own, p); len(paths) > 0 {
		return fault.SandboxTooWide.New("pid %d may not spawn a program that writes %s, which it may only read itself", call.PID, paths[0]).
			WithFix("name it in sandbox.read too")
	}
	return beyond(call.PID, own.Limits, p.Limits)
}

// checkStdio refuses a caller's socket outside of the runtime directory, and options that exclude one: at a restart nobody
// listens there any more.
func checkStdio(p *schema.Program) *fault.Fault {
	if p.Stdio == nil {
		return nil
	}
	name, found := strings.CutPrefix(*p.Stdio, "io-")
	switch {
	case !found || name == "" || strings.Trim(name, "0123456789abcdef") != "":
		return kernel.Invalid("stdio", "must be the name of a socket in the runtime directory such as io-3f")
	case p.Channel != nil && *p.Channel != "fd3":
		return kernel.Invalid("channel", "must be fd3 with stdio, which takes standard input and output")
	case p.Stderr != nil:
		return kernel.Invalid("stderr", "is the caller's with stdio")
	case said(p.Restart, "never") != "never":
		return kernel.Invalid("restart", "must be never with stdio, which is there for one run")
	}
	return nil
}

// checkPublish refuses ports that cannot be published, and one that is named twice.
func checkPublish(p *schema.Program) *fault.Fault {
	if p.Publish == nil {
		return nil
	}
	if net := p.Sandbox.Network(); net != "kernel" {
		return kernel.Invalid("publish", "needs sandbox.net kernel: with %s the program's ports are not in a network of its own", net)
	}
	taken := make(map[uint16]bool)
	for _, text := range p.Publish {
		port, _, err := schema.ParsePublished(text)
		if err != nil {
			return kernel.Invalid("publish", "%v", err)
		}
		if taken[port] {
			return kernel.Invalid("publish", "names port %d twice", port)
		}
		taken[port] = true
	}
	return nil
}

// checkUpstream refuses an invalid upstream.
func checkUpstream(p *schema.Program) *fault.Fault {
	if p.Upstream == nil {
		return nil
	}
	_, err := p.Upstream.Target()
	switch {
	case err != nil:
		return kernel.Invalid("upstream.url", "%v", err)
	case !strings.HasPrefix(p.Upstream.From, "vault/") || nul(p.Upstream.From):
		return kernel.Invalid("upstream.from", "must be the key of a sealed value such as vault/token")
	case p.Sandbox.Network() != "kernel":
		return kernel.Invalid("upstream", "is reached through the network kernel, and the program has %s", p.Sandbox.Network())
	}
	return nil
}

// checkLogins refuses credentials that no upstream could be sent.
func checkLogins(p *schema.Program) *fault.Fault {
	for name, secret := range p.Logins {
		if !schema.UpstreamName(name) || secret == "" || nul(secret) {
			return kernel.Invalid("logins", "cannot have a login %q: its name has lower-case letters, digits and hyphens, and the credential is a text without a NUL", name)
		}
	}
	if p.Logins != nil && p.Sandbox.Network() != "kernel" {
		return kernel.Invalid("logins", "are for upstreams, which are reached through the network kernel, and the program has %s", p.Sandbox.Network())
	}
	return nil
}

func nul(s string) bool { return strings.ContainsRune(s, 0) }

// withoutCommand refuses options of a program if there is none.
func withoutCommand(p *schema.Program) *fault.Fault {
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"env", p.Env != nil},
		{"secrets", p.Secrets != nil},
		{"logins", p.Logins != nil},
		{"upstream", p.Upstream != nil},
		{"publish", p.Publish != nil},
		{"cwd", p.Cwd != nil},
		{"snapshot", p.Snapshot != nil},
		{"restart", p.Restart != nil},
		{"stdio", p.Stdio != nil},
		{"stderr", p.Stderr != nil},
		{"sign", p.Sign != nil},
		{"user", p.User != nil},
		{"umask", p.Umask != nil},
		{"channel", p.Channel != nil},
		{"limits", p.Limits != nil},
		{"sandbox", p.Sandbox != nil},
	} {
		if option.given {
			return kernel.Invalid(option.name, "says how a program is run: name one with command")
		}
	}
	return nil
}

// beyond refuses limits that exceed the spawner's own, and missing ones if the spawner has them.
func beyond(pid int64, own, asked *schema.Limits) *fault.Fault {
	if own == nil {
		return nil
	}
	if asked == nil {
		asked = &schema.Limits{}
	}
	for _, limit := range limitsOf(own, asked) {
		if limit.own != nil && (*limit.asked == nil || **limit.asked > *limit.own) {
			return fault.CapabilityTooMuch.New("pid %d may not spawn without limits.%s of at most %d, its own", pid, limit.name, *limit.own).
				WithFix("set that limit for the child, or have the operator spawn it")
		}
	}
	return nil
}

// limit is one of a spawner and of what it asks for.
type limit struct {
	name  string
	own   *int64
	asked **int64
}

func limitsOf(own, asked *schema.Limits) []limit {
	return []limit{
		{"cpu_seconds", own.CPUSeconds, &asked.CPUSeconds},
		{"memory_bytes", own.MemoryBytes, &asked.MemoryBytes},
		{"open_files", own.OpenFiles, &asked.OpenFiles},
		{"wall_seconds", own.WallSeconds, &asked.WallSeconds},
		{"processes", own.Processes, &asked.Processes},
	}
}

// noteStart answers Process.NoteStart. An ended process has no program any more.
func (d *Domain) noteStart(call *kernel.Call, in *schema.ProcessStartInput) (schema.SuccessOutput, error) {
	if !d.table.alive(in.PID) {
		return schema.SuccessOutput{}, fault.ProcessIsEnded.New("pid %d has ended: its program is not wanted any more", in.PID)
	}
	return done(call, in)
}

// noteEnd answers Process.NoteEnd. If the program is not restarted, the process and its descendants end first.
func (d *Domain) noteEnd(call *kernel.Call, in *schema.ProcessEndInput) (schema.SuccessOutput, error) {
	if in.Restart || !d.table.alive(in.PID) {
		return done(call, in)
	}
	tree := d.table.descend(in.PID)
	return kernel.InSlices(call, func() (schema.SuccessOutput, bool) {
		all := tree.more(visits)
		if all {
			end(call, tree.childrenFirst(), "its program ended: "+in.Reason)
		}
		return schema.SuccessOutput{Success: true}, all
	}), nil
}

// host applies the part of Syscall.Spawn about a program.
func (d *Domain) host(child *schema.Descriptor, p *schema.Program) {
	if p.Command == nil {
		return
	}
	none := int64(0)
	child.Command, child.Restarts, child.User, child.Snapshot = p.Command, &none, p.User, p.Snapshot
	d.table.programs.Set(child.PID, &program{Spec: *p})
}

func (d *Domain) applyNoteStart(e *kernel.Entry, in *schema.ProcessStartInput) {
	d.change(in.PID, func(p *schema.Descriptor) {
		p.State, p.BlockedUntilTick = running, nil
		p.OSPID, p.Sandbox, p.Upstreams = &in.OSPID, &in.Sandbox, in.Upstreams
		if in.Again && p.Restarts != nil {
			n := *p.Restarts + 1
			p.Restarts = &n
		}
	})
	if in.Again {
		d.note(e, schema.ProcessRestarted, in.PID)
	} else {
		d.note(e, schema.ProcessStarted, in.PID)
	}
}

// applyNoteEnd applies Process.NoteEnd. The process may have ended before its program.
func (d *Domain) applyNoteEnd(e *kernel.Entry, in *schema.ProcessEndInput) {
	d.change(in.PID, func(p *schema.Descriptor) {
		p.OSPID = nil
		p.Exit = &schema.Exit{Code: in.Code, Signal: in.Signal, Reason: in.Reason, Fault: in.Fault, Why: in.Why, Tick: e.Tick, Time: e.Time}
		if p.State == terminated {
			return
		}
		p.State = ready
		if in.BlockedTicks > 0 {
			until := e.Tick + in.BlockedTicks
			p.State, p.BlockedUntilTick = blocked, &until
		}
	})
	if run, ok := d.table.programs.Get(in.PID); ok {
		d.table.programs.Set(in.PID, &program{Spec: run.Spec, Faults: in.Faults, Quick: in.Quick})
	}
	d.note(e, schema.ProcessExited, in.PID)
	if p, ok := d.table.processes.Get(in.PID); ok && p.State == blocked {
		d.note(e, schema.ProcessBlocked, in.PID)
	}
}

// change replaces the descriptor of a remembered process.
func (d *Domain) change(pid int64, edit func(*schema.Descriptor)) {
	p, ok := d.table.processes.Get(pid)
	if !ok {
		return
	}
	next := *p
	edit(&next)
	d.table.processes.Set(pid, &next)
	d.view.touch(pid)
}
