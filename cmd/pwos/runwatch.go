package main

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// ended returns the error of run for an agent's end; nil if the program exited with 0.
func (j *job) ended(d schema.Descriptor) error {
	end := d.Exit
	switch {
	case end == nil:
		return nil
	case end.Reason == view.NotStarted:
		id := fault.ProcessNotStarted
		if len(j.args) > 0 && !executable(j.args[0]) {
			id = fault.ProcessNotRunnable
		}
		return id.New("%s", view.Escaped(view.Why(end)))
	case end.Signal != nil:
		return cli.Ended{Status: int(128 + *end.Signal), Signal: syscall.Signal(*end.Signal)}
	case end.Code == nil:
		return cli.ExitStatus(fault.ExitError)
	case *end.Code != 0:
		return cli.Ended{Status: int(*end.Code)}
	}
	return nil
}

// executable reports whether a file is not one that this shell would find and then refuse.
func executable(name string) bool {
	_, err := exec.LookPath(name)
	return !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EISDIR)
}

// run starts the agent of j. Without --detach, it returns after the agent's end.
func (a *app) run(ctx context.Context, j *job) error {
	ctx, stop := cli.UntilHangup(ctx)
	defer stop()
	return a.WithKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		defer func() { _ = a.keepNotes(c.Places().Log) }() // a full disk is not the program's failure
		if err := a.keepGit(ctx, c, j); err != nil {
			return err
		}
		began := time.Now().UnixMilli()
		end, err := a.start(ctx, c, j)
		if gitErr := a.settleGit(ctx, c, j); gitErr != nil {
			a.Say("%v", gitErr) // not the program's failure, and "pwos git" tries again
		}
		if j.detach {
			if err == nil && a.StderrTerminal() {
				a.tellHeld(j)
			}
			return err
		}
		if j.stdio { // an interrupt was the program's
			ctx = context.WithoutCancel(ctx)
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
		if err := a.tellOutcome(ctx, c, j, &end, began); err != nil {
			return err
		}
		a.tellHeld(j)
		return j.ended(end)
	})
}

// start starts the agent of j. Without --detach, it returns after the agent's end, with the agent's last descriptor. If it also returns an
// error, only the descriptor's PID is valid.
func (a *app) start(ctx context.Context, c *client.Client, j *job) (end schema.Descriptor, err error) {
	var own *ownStdio
	var out *agentOutput
	switch {
	case j.stdio:
		if own, err = newOwnStdio(a, c.Places().Dir, j.noTTY); err != nil {
			return end, err
		}
		defer cli.CloseInto(&err, cli.Closer(own.close))
		j.input.Stdio = &own.name
	case !j.detach:
		if out, err = newAgentOutput(c.Places().Dir, a.Stderr); err != nil {
			return end, err
		}
		defer cli.CloseInto(&err, cli.Closer(out.close))
		j.input.Stderr = &out.path
	}
	var connected func() (*life, error)
	if !j.detach {
		connected = a.connectLife(ctx)
		defer func() {
			if l, dialErr := connected(); dialErr == nil {
				err = errors.Join(err, l.Close())
			}
		}()
	}
	if err := a.tellCopy(ctx, c, j); err != nil {
		return end, err
	}
	pid, err := j.spawn(ctx, c)
	if err != nil {
		return end, err
	}
	if j.started != nil {
		j.started(pid)
	}
	if err := a.tellUncovered(ctx, c, j); err != nil {
		a.note("%v", err) // only a warning, since the agent runs
	}
	if j.detach {
		return end, a.announce(ctx, c, j, pid)
	}
	if own != nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = uninterrupted(ctx)
		defer cancel(nil)
		if err := own.begin(j.learn.on); err != nil {
			return end, (&watch{app: a, client: c, pid: pid}).takeDown(ctx, err)
		}
	}
	end, err = a.attend(ctx, c, pid, connected, own, out)
	end.PID = pid
	return end, err
}

// connectLife connects for the events of the agent while it is spawned, and returns a function that waits for the connection.
func (a *app) connectLife(ctx context.Context) func() (*life, error) {
	var l *life
	var err error
	var dialling sync.WaitGroup
	dialling.Go(func() {
		var options client.Options
		if options, err = a.Options(); err == nil {
			l, err = dialLife(context.WithoutCancel(ctx), options)
		}
	})
	return func() (*life, error) {
		dialling.Wait()
		return l, err
	}
}

// uninterrupted returns a context that ends when the time of ctx is over, and not by a signal, which the program gets.
func uninterrupted(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	goesOn, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, fault.CallTimeout) {
			cancel(cause)
		}
	})
	return goesOn, func(cause error) {
		stop()
		cancel(cause)
	}
}

// attend waits until an agent has ended, and all that it wrote to the terminal or out is shown. If it cannot, or if ctx ends first, it
// ends the agent and returns the cause.
func (a *app) attend(ctx context.Context, c *client.Client, pid int64, connected func() (*life, error), own *ownStdio, out *agentOutput) (end schema.Descriptor, err error) {
	w := &watch{app: a, client: c, pid: pid, out: out}
	if w.life, err = connected(); err != nil {
		return end, w.takeDown(ctx, err)
	}
	w.life.follow(context.WithoutCancel(ctx), pid)
	defer a.showQuestions(ctx, c, pid, own)()
	if end, err = w.follow(ctx); err != nil {
		return end, w.takeDown(ctx, err)
	}
	if own != nil {
		own.finish(ctx)
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
	out      *agentOutput // nil: the agent has the standard error of this process
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
	var d schema.Descriptor
	for {
		pause = w.life.pause(pause)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-w.life.news: // the first time that the subscription is active
		case <-unshown:
			timer.Stop()
			return d, w.out.failure()
		}
		timer.Stop()
		var err error
		d, err = w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return d, context.Cause(ctx)
		case err != nil || view.Ended(&d):
			return d, err
		}
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
		w.app.note("%s (pid %d) was restarted, the %s time: it %s", view.Escaped(d.AgentID), d.PID, view.Ordinal(n), view.EndText(d.Exit))
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
