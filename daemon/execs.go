package daemon

import (
	"context"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/execs"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// watchExecs has what a program executes kept, and refused as rules say.
func (d *Daemon) watchExecs(c *host.Command) {
	if d.config.Record.Execs != config.On {
		return
	}
	pid := c.PID
	c.Exec = func(ctx context.Context, e *host.Exec) syscall.Errno {
		refused, advice := d.refuses(ctx, pid, e)
		switch {
		case refused == nil:
			d.execs.Add(pid, e, "")
			return 0
		case e.Missing: // whatever is there meanwhile
			d.execs.Add(pid, e, "")
			return syscall.ENOENT
		}
		r := d.execs.Add(pid, e, refused.Text())
		d.calls.Refused(pid, told(&r, refused, advice))
		return syscall.EACCES
	}
}

// refuses returns why an agent's process may not execute a program, nil if it may, and the advice of the rule. What rules refuse or ask about is a call of the agent,
// Program.Exec. The program that the agent is started with was judged with the call that starts it.
func (d *Daemon) refuses(ctx context.Context, pid int64, e *host.Exec) (why *fault.Fault, advice string) {
	if e.First || !d.policies.JudgesPrograms(pid) { // the usual case
		return nil, ""
	}
	in := &schema.ProgramExecInput{Path: strings.ToValidUTF8(e.Path, "\uFFFD"), Cwd: strings.ToValidUTF8(e.Dir, "\uFFFD"), Step: d.calls.Step(pid), Cut: e.Cut, Hidden: e.Hidden, Argv: make([]string, len(e.Args))}
	for i, arg := range e.Args {
		in.Argv[i] = strings.ToValidUTF8(arg, "\uFFFD")
	}
	decides, rule := d.policies.Program(pid, d.kernel.Tick(), in)
	if !decides {
		return nil, ""
	}
	if e.Missing { // a search in PATH goes on, and is judged where the program is
		return fault.PolicyDenied.New("a rule decides about %s, which is not there", fault.Clip(e.Path)), ""
	}
	var approval *kernel.Approval
	if rule != nil {
		if advice = rule.Fix; rule.Ask > 0 && !in.Cut && !in.Hidden {
			approval = d.calls.Take(pid, in.Argv)
		}
	}
	_, err := d.kernel.Do(ctx, kernel.Own{
		Caller:   kernel.Caller{PID: pid, Kernel: true, Via: "channel"},
		Request:  schema.ProgramExec.With(in),
		Approval: approval,
		Run:      func(context.Context, *kernel.Job) ([]byte, error) { return schema.SuccessOutput{}.AppendJSON(nil), nil },
	})
	if err == nil {
		return nil, ""
	}
	return fault.Of(err), advice
}

// approvedTool notes the programs that the command of an approved tool names: its approval is one of each of them, once.
func (d *Daemon) approvedTool(call *kernel.Call, in *schema.ToolUseInput) {
	if programs := d.policies.Named(call, in); programs != nil {
		by := *call.Approval
		by.Use, by.Used = nil, true
		d.calls.Approved(call.PID, step.KeyOf(in.Host, in.Session, in.Tool, in.Use), by, programs)
	}
}

// Bounds of what the end of a tool call says of a refusal, in bytes.
const (
	longestRefused = 300
	longestReason  = 400
	longestRule    = 256
)

// told returns what the end of a tool call says of a refusal.
func told(r *execs.Record, why *fault.Fault, advice string) *schema.StepRefused {
	out := &schema.StepRefused{Program: clip.Text(r.Line(), longestRefused), Error: string(why.ID), Why: clip.Text(why.Message, longestReason)}
	if why.ID != fault.ApprovalPending { // an agent cannot follow the advice to approve it
		advice = why.Fix
	}
	out.Fix = clip.Text(advice, longestReason)
	if rule := why.Detail("rule"); rule != "" {
		out.Rule = new(clip.Text(rule, longestRule))
	}
	if question := why.Detail("approval"); question != "" {
		out.Approval = &question
	}
	return out
}
