package actors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// preparing is a domain that answers with what was prepared.
type preparing struct{ *fake }

func (preparing) Prepare(call *kernel.Call) { call.Prepared = len(text(call)) }

func (p preparing) Decide(call *kernel.Call) (kernel.Result, error) {
	return kernel.Result{Data: fmt.Appendf(nil, `"%v"`, call.Prepared)}, nil
}

// TestPrepare: a call on a long line is prepared where the line is decoded, outside of the loop.
func TestPrepare(t *testing.T) {
	t.Parallel()
	s := start(t, preparing{newFake()})
	c := s.serve(newLink(schema.OsMessage, 1<<20, unbounded))
	c.send(echo("a", "short"), echo("b", strings.Repeat("x", 65<<10)), strings.Repeat("x", 65<<10))
	if got, want := fmt.Sprint(show(c.take(3))), `[a "<nil>" b "66560"  400]`; got != want {
		t.Errorf("%.200s, want %s", got, want)
	}
}

// prepared is a domain of effects whose ends are prepared.
type prepared struct{ *fetches }

func (prepared) Prepare(call *kernel.Call) { call.Prepared = true }

func (p prepared) Decide(call *kernel.Call) (kernel.Result, error) {
	if _, ends := call.Input.(*schema.EffectEnd); ends && call.Prepared == nil {
		return kernel.Result{}, fmt.Errorf("not prepared")
	}
	return p.fetches.Decide(call)
}

// TestPrepareEnd: the end of an effect is prepared on the effect's goroutine.
func TestPrepareEnd(t *testing.T) {
	t.Parallel()
	c := startWith(t, map[schema.Domain]kernel.Domain{schema.Http: prepared{newFetches()}}).connect()
	c.send(fetchOf("a", "x"))
	if got, want := fmt.Sprint(show(c.take(1))), `[a "x"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
