package main

import (
	"context"
	"fmt"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// explain prints what would come of a call, and ends as the call would.
func (a *app) explain(ctx context.Context, in *schema.CheckInput) error {
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		data, err := invoke(ctx, c, schema.CapabilityCheck.Type, in)
		if err != nil {
			return err
		}
		out, err := answerAs[schema.CheckOutput](schema.CapabilityCheck.Type, data)
		if err != nil {
			return err
		}
		if a.wantsJSON() {
			err = a.printLine(data)
		} else {
			err = a.printExplained(&out)
		}
		if err != nil || out.Allowed {
			return err
		}
		return exitStatus(exitOf(fault.ID(out.Error).New("%s", out.Reason)))
	})
}

// printExplained is the answer for people.
func (a *app) printExplained(out *schema.CheckOutput) error {
	t := new(table)
	t.header("stage", "verdict", "why")
	var end schema.CheckStage
	for _, end = range out.Stages {
		t.row(end.Stage, end.Verdict, escaped(end.Why))
	}
	if err := a.printTable(t); err != nil {
		return err
	}
	switch who := ""; {
	case out.Allowed:
		if out.PID != nil && out.Tick != nil {
			who = fmt.Sprintf(" by pid %d at tick %d", *out.PID, *out.Tick)
		}
		a.say("%s would be done%s", out.Type, who)
	case end.Verdict == "asks":
		a.say("%s would wait for an approval", out.Type)
	default:
		a.say("%s would be refused: %s (%d)", out.Type, out.Error, out.Code)
	}
	if end.Fix != "" {
		a.say("fix: %s", end.Fix)
	}
	if end.Exception != "" {
		a.say(`the narrowest change that allows it: in the rule at %s, before its ";": %s`, end.At, end.Exception)
	}
	return nil
}
