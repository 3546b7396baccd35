package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// ended returns the error of run for an agent's end; nil if the program exited with 0.
func ended(d schema.Descriptor) error {
	end := d.Exit
	switch {
	case end == nil:
		return nil
	case end.Reason == view.NotStarted:
		return fault.ProcessNotStarted.New("%s", view.Escaped(view.Why(end)))
	case end.Signal != nil:
		return cli.ExitStatus(128 + *end.Signal)
	case end.Code == nil:
		return cli.ExitStatus(fault.ExitError)
	case *end.Code != 0:
		return cli.ExitStatus(*end.Code)
	}
	return nil
}

// tellEnd prints to stderr how a program ended, and how many calls it made (PROTOCOL 9).
func (a *app) tellEnd(ctx context.Context, c *client.Client, d *schema.Descriptor) error {
	if d.Exit == nil || d.Exit.Reason == view.NotStarted { // the error of run has the reason
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	n, err := countCalls(ctx, c, d.PID)
	if err != nil {
		return err
	}
	a.Say("pid %d (%s) %s after %s, %d refused: pwos audit log --pid %d", d.PID, view.Escaped(d.AgentID), view.EndText(d.Exit), n, n.refused, d.PID)
	return nil
}

// tally has the numbers of a process's calls.
type tally struct {
	calls, refused int
	more           bool // there are calls beyond those counted
}

// String returns the number of calls as a text.
func (t tally) String() string {
	switch {
	case t.more:
		return fmt.Sprintf("more than %d calls", t.calls)
	case t.calls == 1:
		return "1 call"
	}
	return fmt.Sprintf("%d calls", t.calls)
}

// mostPages bounds the pages of the record that countCalls reads.
const mostPages = 50

// countCalls counts the calls of a process and the refused ones among them.
func countCalls(ctx context.Context, c *client.Client, pid int64) (t tally, err error) {
	pages := 0
	err = eachPage(ctx, c, schema.AuditLogInput{PID: &pid}, func(entries []view.Entry, more bool) error {
		for i := range entries {
			if e := &entries[i]; !view.Internal(e.Type) {
				t.calls++
				if view.Refusal(e.Code) {
					t.refused++
				}
			}
		}
		pages++
		if t.more = more && pages == mostPages; t.more {
			return cli.ErrEnough
		}
		return nil
	})
	return t, err
}

// run starts the agent of j. Without --detach, it returns after the agent's end.
func (a *app) run(ctx context.Context, j *job) error {
	ctx, stop := cli.UntilHangup(ctx)
	defer stop()
	return a.WithKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		end, err := a.start(ctx, c, j)
		if j.detach {
			return err
		}
		pid := end.PID
		if j.learn.on && pid != 0 && (err == nil && end.Exit.Reason != view.NotStarted || err != nil && ctx.Err() != nil) {
			// The user may interrupt an agent that does not end by itself, and still wants the learned grant.
			if err := a.learned(context.WithoutCancel(ctx), c, j, pid); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if err := a.tellEnd(ctx, c, &end); err != nil {
			return err
		}
		return ended(end)
	})
}

// start starts the agent of j. Without --detach, it returns after the agent's end, with the agent's last descriptor. If it also returns an
// error, only the descriptor's PID is valid.
func (a *app) start(ctx context.Context, c *client.Client, j *job) (end schema.Descriptor, err error) {
	if j.profile.Snapshot {
		if err := a.copyBefore(ctx, j); err != nil {
			return end, err
		}
	}
	var t *terminal
	var out *agentOutput
	switch {
	case j.tty:
		if t, err = newTerminal(a); err != nil {
			return end, err
		}
		defer cli.CloseInto(&err, cli.Closer(t.detach))
		j.input.TTY = &t.name
	case !j.detach:
		if out, err = newAgentOutput(c.Places().Dir, a.Stderr); err != nil {
			return end, err
		}
		defer cli.CloseInto(&err, cli.Closer(out.close))
		j.input.Stderr = &out.path
	}
	pid, err := j.spawn(ctx, c)
	if err != nil {
		return end, errors.Join(err, j.uncopy(err))
	}
	if j.profile.Snapshot {
		if err := a.tellCopied(ctx, c, j, pid); err != nil {
			a.Say("%v", err) // only a warning, since the agent runs
		}
	}
	if j.detach {
		return end, a.announce(ctx, c, pid)
	}
	end, err = a.attend(ctx, c, pid, t, out)
	end.PID = pid
	return end, err
}

// attend waits until an agent has ended, and all that it wrote to t or out is shown. If it cannot, or if ctx ends first, it ends the
// agent and returns the cause.
func (a *app) attend(ctx context.Context, c *client.Client, pid int64, t *terminal, out *agentOutput) (end schema.Descriptor, err error) {
	w := &watch{app: a, client: c, pid: pid, out: out}
	if t != nil {
		if err := t.attach(); err != nil {
			return end, w.takeDown(ctx, err)
		}
		defer context.AfterFunc(ctx, func() { _ = t.hangUp() })() // the program gets SIGHUP before the kernel ends it
	}
	options, err := a.Options()
	if err != nil {
		return end, w.takeDown(ctx, err)
	}
	if w.life, err = followLife(context.WithoutCancel(ctx), options, pid); err != nil {
		return end, w.takeDown(ctx, err)
	}
	defer cli.CloseInto(&err, w.life)
	if end, err = w.follow(ctx); err != nil {
		return end, w.takeDown(ctx, err)
	}
	if t != nil {
		t.finish()
	}
	if out != nil {
		return end, out.rest(ctx)
	}
	return end, nil
}

// watch follows an agent in the foreground.
type watch struct {
	app      *app
	client   *client.Client
	pid      int64
	out      *agentOutput // nil: the agent has a terminal
	life     *life
	restarts int64 // number of restarts that were printed
}

// follow waits until the agent has ended, and returns its last descriptor. If ctx ends first, or the output cannot be shown any more, it
// returns the cause.
func (w *watch) follow(ctx context.Context) (schema.Descriptor, error) {
	pause := shortLook
	var unshown <-chan struct{}
	if w.out != nil {
		unshown = w.out.done
	}
	for {
		pause = w.life.pause(pause)
		d, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return d, context.Cause(ctx)
		case err != nil || view.Ended(&d):
			return d, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-w.life.news:
		case <-unshown:
			timer.Stop()
			return d, w.out.failure()
		}
		timer.Stop()
	}
}

// await waits for a pause, and returns the cause if ctx ends first.
func await(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look prints restarts of the agent.
func (w *watch) look(ctx context.Context) (schema.Descriptor, error) {
	d, err := cli.Describe(ctx, w.client, w.pid)
	if err != nil {
		return d, err
	}
	for _, then := range w.life.restarts() {
		w.restarted(&then)
	}
	if w.life.refused.Load() || view.Ended(&d) { // the event may be late or missing
		w.restarted(&d)
	}
	return d, nil
}

// restarted prints a restart, unless it was printed before.
func (w *watch) restarted(d *schema.Descriptor) {
	if n := view.Deref(d.Restarts); d.PID == w.pid && n > w.restarts {
		w.restarts = n
		w.app.Say("%s (pid %d) was restarted, the %s time: it %s", view.Escaped(d.AgentID), d.PID, view.Ordinal(n), view.EndText(d.Exit))
	}
}

// takeDown ends the agent with its descendants, waits for their end, and returns cause. It shows their last output if
// that can be shown. If the kernel has ended, so have its agents, and takeDown does nothing.
func (w *watch) takeDown(ctx context.Context, cause error) error {
	if errors.Is(cause, fault.DaemonHungUp) {
		return cause
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	reason := "its foreground pwos run has ended"
	_, err := cli.Invoke(ctx, w.client, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: w.pid, Reason: &reason})
	for over := false; err == nil && !over; {
		var d schema.Descriptor
		if d, err = cli.Describe(ctx, w.client, w.pid); err == nil {
			over = view.Ended(&d)
		}
		if err == nil && !over {
			err = await(ctx, 10*shortLook)
		}
	}
	if w.out != nil {
		_ = w.out.rest(ctx) // cause is what ends the verb
	}
	if err != nil {
		w.app.Say(`end pid %d: %v: it may still run; "pwos ps" tells, "pwos kill %d" tries again`, w.pid, err, w.pid)
	}
	return cause
}
