package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// tellOutcome says how a program ended, and what it has changed. It asks the kernel for both at once.
func (a *app) tellOutcome(ctx context.Context, c *client.Client, j *job, d *schema.Descriptor, began int64) error {
	var steps []schema.StepState
	var stepsErr error
	var asking sync.WaitGroup
	asking.Go(func() { steps, stepsErr = stepsSince(ctx, c, d, began) })
	err := a.tellEnd(ctx, c, j, d)
	asking.Wait()
	if err = cmp.Or(err, stepsErr); err != nil {
		return err
	}
	a.tellSteps(j, d, steps)
	return nil
}

// tellEnd prints to stderr how a program ended, and how many calls it made, at a terminal or if one was refused (PROTOCOL 9).
func (a *app) tellEnd(ctx context.Context, c *client.Client, j *job, d *schema.Descriptor) error {
	if d.Exit == nil || d.Exit.Reason == view.NotStarted { // the error of run has the reason
		return nil
	}
	if d.Exit.Reason == "limit:disk" {
		a.Say("%s was ended: its home and its /tmp have more of the disk than disk_bytes of [agents]: \"pwos home ls\" shows what agents have, and %s removes a home",
			view.Escaped(d.AgentID), quote.Command("pwos", "home", "rm", j.input.ChildAgentID))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	if !a.StderrTerminal() { // the record of all calls takes the kernel longer than one of none that was refused
		page, err := auditPage(ctx, c, &schema.AuditLogInput{PID: &d.PID, Denied: new(true), Limit: new(int64(1))})
		if err != nil || len(page.entries) == 0 && page.next == 0 {
			return err
		}
	}
	n, err := countCalls(ctx, c, d.PID)
	if err != nil || n.refused == 0 && !a.StderrTerminal() {
		return err
	}
	a.Say("pid %d (%s) %s after %s, %d refused: pwos audit log --pid %d", d.PID, view.Escaped(d.AgentID), view.EndText(d.Exit), n, n.refused, d.PID)
	if j.as.foreign != "" && j.ended(*d) != nil { // that may be why
		a.Say("%s", j.as.foreign)
	}
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
