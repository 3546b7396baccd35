package step_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
)

// TestState: the number that a begin was answered is kept, a step that is recorded twice is there once, and a replay and a snapshot give
// the same state.
func TestState(t *testing.T) {
	t.Parallel()
	d := step.New(nil)
	var journal domaintest.Journal
	apply := func(typ, data string) {
		t.Helper()
		call := domaintest.Request(t, typ, data)
		result, err := domaintest.Decide(t, d, call)
		testkit.Must(t, err)
		journal.Apply(d, call, result.Data)
		d.Publish()
	}
	began := func(number int) string {
		outcome := schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Data: fmt.Appendf(nil, `{"agent":"a","step":%d}`, number)})
		return fmt.Sprintf(`{"intent":1,"type":"Step.Begin","pid":1,"ran":true,"outcome":%s}`, outcome)
	}
	ended := `{"agent":"a","step":1,"pid":1,"tree":"/t","kind":"call","tool":"h/t","began":1,"ended":2,"files":{"made":1,"changed":0,"removed":0,"items":[{"path":"f","what":"made"}]},` +
		`"programs":{"count":1,"items":["/bin/ls"]},"connections":{"count":0},"shared":false,"digest":"sha256-0","cuts":[7]}`
	apply("Step.Began", began(3))
	apply("Step.Began", began(0))
	apply("Step.Ended", ended)
	apply("Step.Ended", ended)
	if last, list := d.View().Last("a"), d.View().Of("a"); last != 3 || len(list) != 1 || list[0].Programs.Items != nil {
		t.Errorf("the last number is %d, the records are %+v", last, list)
	}
	if list := d.View().Of("b"); list != nil || d.View().Last("b") != 0 {
		t.Errorf("another name has %+v", list)
	}
	journal.Check(t, d, step.New(nil), step.New(nil))
}
