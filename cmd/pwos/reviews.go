package main

import (
	"context"
	"fmt"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// nextForReview returns the commands for the copy of an agent.
func nextForReview(agent string) string {
	return fmt.Sprintf("%s, %s, %s", quote.Line("pwos", "diff", agent), quote.Line("pwos", "apply", agent), quote.Line("pwos", "discard", agent))
}

// tellCopy says that the agent works on a copy, and if it goes on with one that waits.
func (a *app) tellCopy(ctx context.Context, c *client.Client, j *job) error {
	if !j.profile.Review || !a.StderrTerminal() {
		return nil
	}
	list, err := reviews(ctx, c)
	if err != nil {
		return err
	}
	for i := range list {
		if r := &list[i]; r.Agent == j.input.ChildAgentID && !r.Runs {
			a.Say("%s goes on with its copy of %s, of %s: %s shows what it has changed, %s begins again", view.Escaped(r.Agent), view.Escaped(r.Tree),
				view.Moment(r.Began), quote.Line("pwos", "diff", r.Agent), quote.Line("pwos", "discard", r.Agent))
			return nil
		}
	}
	a.Say("%s works on a copy of its directory, which is made first", view.Escaped(j.input.ChildAgentID))
	return nil
}

// reviews returns the copies that wait to be applied or discarded.
func reviews(ctx context.Context, c *client.Client) ([]schema.StepReview, error) {
	out, err := cli.InvokeAs(ctx, c, schema.StepList, &schema.StepListInput{Limit: new(int64(1))})
	return out.Reviews, unlessUnkept(err)
}

// tellReviews names the copies that wait, of agents that have ended.
func (a *app) tellReviews(list []schema.StepReview) {
	for i := range list {
		if r := &list[i]; !r.Runs {
			a.Say("a copy of %s that %s worked on waits: %s", view.Escaped(r.Tree), view.Escaped(r.Agent), nextForReview(r.Agent))
		}
	}
}

// addReviews adds the copies that wait to the status of a kernel.
func addReviews(o *view.Object, t *view.Table, list []schema.StepReview) error {
	if len(list) == 0 {
		return nil
	}
	for i := range list {
		r := &list[i]
		t.Row("to review", fmt.Sprintf("copy of %s by %s: %s", view.Escaped(r.Tree), view.Escaped(r.Agent), nextForReview(r.Agent)))
	}
	text, err := schema.Marshal(&list)
	*o = o.Raw("reviews", text)
	return err
}
