package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// exitNotStarted is the exit status for a program that could not be started: that of shells.
const exitNotStarted = 127

// run starts the agent of j, and in the foreground stays with it until it has ended.
func (a *app) run(ctx context.Context, j *job) error {
	ctx, stop := untilHangup(ctx)
	defer stop()
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		end, err := a.start(ctx, c, j)
		if j.detach {
			return err
		}
		pid := end.PID
		if j.learn && pid != 0 && (err == nil && end.Exit.Reason != notStarted || err != nil && ctx.Err() != nil) {
			// An agent that does not end by itself is ended by its user, who has still something to learn.
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

// start starts the agent of j. In the foreground it returns when that has ended: with its last descriptor, of which only the
// PID is certain where there is an error too.
func (a *app) start(ctx context.Context, c *client.Client, j *job) (end schema.Descriptor, err error) {
	var t *terminal
	if j.tty {
		if t, err = newTerminal(a); err != nil {
			return end, err
		}
		defer closeInto(&err, closer(t.detach))
		j.input.TTY = &t.name
	}
	pid, err := j.spawn(ctx, c)
	if err != nil {
		return end, err
	}
	if j.detach {
		return end, a.announce(ctx, c, pid)
	}
	end, err = a.attend(ctx, c, pid, t)
	end.PID = pid
	return end, err
}

// attend stays with an agent until it has ended. Where it cannot, or ctx ends, it takes the agent down and returns why.
func (a *app) attend(ctx context.Context, c *client.Client, pid int64, t *terminal) (end schema.Descriptor, err error) {
	w := &watch{app: a, client: c, pid: pid}
	if t != nil {
		if err := t.attach(); err != nil {
			return end, w.takeDown(ctx, err)
		}
		defer context.AfterFunc(ctx, func() { _ = t.hangUp() })() // the program is told first
	}
	if w.log, err = newAgentLog(pid, a.stderr); err != nil {
		return end, w.takeDown(ctx, err)
	}
	defer closeInto(&err, closer(w.log.close))
	options, err := a.options()
	if err != nil {
		return end, w.takeDown(ctx, err)
	}
	if w.life, err = followLife(context.WithoutCancel(ctx), options, pid); err != nil {
		return end, w.takeDown(ctx, err)
	}
	defer closeInto(&err, w.life)
	if end, err = w.follow(ctx); err != nil {
		return end, w.takeDown(ctx, err)
	}
	if t != nil {
		t.finish()
	}
	return end, nil
}

// spawn has the kernel start the program, and returns the PID. It does not stop waiting half way: the agent would be there,
// and nobody would know its PID.
func (j *job) spawn(ctx context.Context, c *client.Client) (pid int64, err error) {
	patient, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), usualTimeout, errTimeout)
	defer cancel()
	if err := ruled(patient, c, j.profile); err != nil {
		return 0, err
	}
	if j.input.Capabilities, err = j.grant(patient, c); err != nil {
		return 0, err
	}
	out, err := invokeAs(patient, c, schema.SyscallSpawn, &j.input)
	for n := 2; j.unnamed && taken(err) && n <= mostAlike; n++ {
		input := j.input
		input.ChildAgentID = fmt.Sprintf("%s-%d", input.ChildAgentID, n)
		out, err = invokeAs(patient, c, schema.SyscallSpawn, &input)
	}
	return out.ChildPID, err
}

// mostAlike is how many agents may be named after one program at a time.
const mostAlike = 1000

// taken reports whether a spawn was refused because a living agent has the name.
func taken(err error) bool {
	return kernelCode(err) == 409
}

// announce prints the PID of an agent that is left alone, or says why it never ran.
func (a *app) announce(ctx context.Context, c *client.Client, pid int64) error {
	d, err := describe(ctx, c, pid)
	if err != nil {
		return err
	}
	if d.Exit != nil && d.Exit.Reason == notStarted && d.State == terminated {
		return ended(d)
	}
	return a.printLine(fmt.Append(nil, pid))
}

// watch stays with an agent in the foreground.
type watch struct {
	app      *app
	client   *client.Client
	pid      int64
	log      *agentLog
	life     *life
	restarts int64 // that were told of
}

// follow shows the agent's log until it has ended, and returns its last descriptor, or the cause of ctx's end.
func (w *watch) follow(ctx context.Context) (schema.Descriptor, error) {
	pause := shortLook
	for {
		pause = w.life.pause(pause)
		d, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return d, context.Cause(ctx)
		case err != nil || gone(&d):
			return d, err
		}
		if err := w.log.wait(ctx, pause, w.life.news); err != nil {
			return d, err
		}
	}
}

// look shows what is new of the agent. What it wrote before it ended is there once it has.
func (w *watch) look(ctx context.Context) (schema.Descriptor, error) {
	d, err := describe(ctx, w.client, w.pid)
	if err != nil {
		return d, err
	}
	if err := w.log.copy(); err != nil {
		return d, err
	}
	for _, then := range w.life.restarts() {
		w.restarted(&then)
	}
	if w.life.refused.Load() || gone(&d) { // the news may have come too late, or not at all
		w.restarted(&d)
	}
	return d, nil
}

// restarted says that the agent runs again, once for each time.
func (w *watch) restarted(d *schema.Descriptor) {
	if n := value(d.Restarts); d.PID == w.pid && n > w.restarts {
		w.restarts = n
		w.app.say("%s (pid %d) was started again, the %s time: it %s", escaped(d.AgentID), d.PID, ordinal(n), endText(d.Exit))
	}
}

// takeDown ends the agent and what it started, waits until they are gone, and returns cause. What they say at their end is
// shown if it can be. A kernel that is gone has taken its agents along.
func (w *watch) takeDown(ctx context.Context, cause error) error {
	if errors.Is(cause, fault.DaemonHungUp) {
		return cause
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), usualTimeout, errTimeout)
	defer cancel()
	reason := "the pwos run in whose foreground it was has ended"
	_, err := invoke(ctx, w.client, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: w.pid, Reason: &reason})
	for over := false; err == nil && !over; {
		var d schema.Descriptor
		if d, err = describe(ctx, w.client, w.pid); err == nil {
			over = gone(&d)
		}
		if w.log == nil {
			continue
		}
		if w.log.copy() != nil || !over && w.log.wait(ctx, 10*shortLook, nil) != nil {
			w.log = nil // nobody reads it; that is the cause, or comes to the same
		}
	}
	if err != nil {
		w.app.say(`end pid %d: %v: it may still run; "pwos ps" tells, "pwos kill %d" tries again`, w.pid, err, w.pid)
	}
	return cause
}
