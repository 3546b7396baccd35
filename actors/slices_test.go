package actors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestInSlices: a call that takes long to decide takes a turn for each slice, so that other calls run in between.
func TestInSlices(t *testing.T) {
	t.Parallel()
	const n = 10_000
	for _, c := range []struct {
		typ, data, want string
		turns           int
	}{
		{"Capability.RevokeExpired", `{}`, `{"revoked":[1,2,3,`, 1}, // a line has no room for all
		{"Capability.RevokeExpired", `{}`, `{"revoked":[]}`, n / 4096},
		{"Syscall.Terminate", `{"target_pid":1}`, `{"target_pid":1}`, 2*n/1024 + 4*n/256},
	} {
		t.Run(c.typ+c.want, func(t *testing.T) {
			t.Parallel()
			m := startManual(t, nil)
			m.populate(n, c.want != `{"revoked":[]}`)
			a := m.ask(frame(schema.OsMessage, schema.KindCommand, c.typ, c.data, "x"))
			if !strings.HasPrefix(string(a.Data), c.want) {
				t.Errorf("%.80s", a)
			}
			if m.turns < c.turns {
				t.Errorf("the decision took %d turns, want %d or more", m.turns, c.turns)
			}
		})
	}
}

// sliced decides an echo of "slices <n> <rest>" in n slices, and then as a fake decides "<rest>".
type sliced struct{ *fake }

func (s sliced) Decide(call *kernel.Call) (kernel.Result, error) {
	var left int
	if _, err := fmt.Sscanf(text(call), "slices %d", &left); err != nil {
		return s.fake.Decide(call)
	}
	last := *call
	last.Input = &schema.EchoInput{Message: strings.SplitN(text(call), " ", 3)[2]}
	var more func() (kernel.Result, error)
	more = func() (kernel.Result, error) {
		if left--; left > 0 {
			return kernel.Result{More: more}, nil
		}
		return s.fake.Decide(&last)
	}
	return kernel.Result{More: more}, nil
}

// TestSlicesEnd: the outcome of the last slice is the outcome of the call, and later calls wait for it.
func TestSlicesEnd(t *testing.T) {
	t.Parallel()
	d := sliced{newFake()}
	s := start(t, d)
	c := s.connect()
	c.send(echo("a", "first"), echo("b", "slices 3 done"), echo("c", "slices 2 refuse"), echo("d", "slices 100 panic"), echo("e", "slices 1 fail"), echo("f", "last"))
	want := `[a {"echo":"first"} b {"echo":"done"} c 409 d 500 e 500 f {"echo":"last"}]`
	if got := fmt.Sprint(show(c.take(6))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := fmt.Sprint(d.changes()), "[c-1 first c-1 slices 3 done c-1 last]"; got != want {
		t.Errorf("applied %s, want %s", got, want)
	}
	if !strings.Contains(s.log.String(), "syscall panicked") {
		t.Error("the panic is not in the log")
	}
}

// TestLongAnswer: an answer that takes long to encode is encoded outside of the loop, and written in the next turn.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	m := startManual(t, nil)
	for _, c := range []struct{ size, turns int }{{1 << 10, 1}, {65 << 10, 2}} {
		want := `"` + strings.Repeat("x", c.size) + `"`
		m.apply("Memory.Set", &schema.MemorySetInput{Key: "k", Value: schema.Value(want)}, `{"success":true}`, 0)
		if a := m.ask(frame(schema.OsMessage, schema.KindQuery, "Memory.Get", `{"key":"k"}`, "x")); string(a.Data) != want {
			t.Errorf("%.80s", a)
		}
		if m.turns != c.turns {
			t.Errorf("%d bytes took %d turns, want %d", c.size, m.turns, c.turns)
		}
	}
}
