package daemon

import (
	"context"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/kernel"
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
		refused := d.refuses(ctx, pid, e)
		switch {
		case refused == nil:
			d.execs.Add(pid, e, "")
			return 0
		case e.Missing: // whatever is there meanwhile
			d.execs.Add(pid, e, "")
			return syscall.ENOENT
		}
		d.execs.Add(pid, e, refused.Text())
		return syscall.EACCES
	}
}

// refuses returns why an agent's process may not execute a program, nil if it may. What rules refuse or ask about is a call of the agent,
// Program.Exec. The program that the agent is started with was judged with the call that starts it.
func (d *Daemon) refuses(ctx context.Context, pid int64, e *host.Exec) *fault.Fault {
	if e.First || !d.policies.JudgesPrograms() { // the usual case
		return nil
	}
	in := &schema.ProgramExecInput{Path: strings.ToValidUTF8(e.Path, "\uFFFD"), Cwd: strings.ToValidUTF8(e.Dir, "\uFFFD"), Cut: e.Cut, Hidden: e.Hidden, Argv: make([]string, len(e.Args))}
	for i, arg := range e.Args {
		in.Argv[i] = strings.ToValidUTF8(arg, "\uFFFD")
	}
	if !d.policies.Program(pid, d.kernel.Tick(), in) {
		return nil
	}
	if e.Missing { // a search in PATH goes on, and is judged where the program is
		return fault.PolicyDenied.New("a rule decides about %s, which is not there", fault.Clip(e.Path))
	}
	_, err := d.kernel.Do(ctx, kernel.Own{
		Caller:  kernel.Caller{PID: pid, Kernel: true, Via: "channel"},
		Request: schema.ProgramExec.With(in),
		Run:     func(context.Context, *kernel.Job) ([]byte, error) { return schema.SuccessOutput{}.AppendJSON(nil), nil },
	})
	if err == nil {
		return nil
	}
	return fault.Of(err)
}
