package cli_test

import (
	"errors"
	"testing"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestVerdict checks that a fault that the client itself raises has its exit status also if it is joined with other errors.
func TestVerdict(t *testing.T) {
	t.Parallel()
	err := errors.Join(fault.StateDamaged.New("damaged"), errors.New("and more"))
	if got := cli.Status(err, false); got != 10 {
		t.Errorf("status %d, want 10", got)
	}
}

// TestData checks that a value is sent byte for byte, and that the syscall's type accepts the data.
func TestData(t *testing.T) {
	t.Parallel()
	pid, tick := int64(7), int64(0)
	intent, priority := `a "b"`, "URGENT"
	const odd = `{ "\u0041" : [1.50, 1e2] }`
	for want, in := range map[string]struct {
		typ, raw string
		in       any
		value    string
	}{
		`{"key":"a/b","value":` + odd + `}`:        {"Memory.Set", "value", &schema.MemorySetInput{Key: "a/b"}, odd},
		`{"pid":7,"key":"k","value":null}`:         {"Memory.Set", "value", &schema.MemorySetInput{Target: schema.Target{PID: &pid}, Key: "k"}, "null"},
		`{"receiver_pid":0,"payload":` + odd + `}`: {"Syscall.SendMsg", "payload", new(schema.SendMsgInput), odd},
		`{"pid":7,"receiver_pid":3,"intent":"a \"b\"","priority":"URGENT","expires_at_tick":0,"payload":1}`: {
			"Syscall.SendMsg", "payload", &schema.SendMsgInput{
				Target: schema.Target{PID: &pid}, ReceiverPID: 3, Intent: &intent, Priority: &priority, ExpiresAtTick: &tick,
			}, "1",
		},
	} {
		got, err := cli.WithRaw(in.in, in.raw, schema.Value(in.value))
		if err != nil || string(got) != want {
			t.Errorf("data %s, %v, want %s", got, err, want)
		}
		row, _ := schema.Lookup(in.typ)
		if _, fault := row.Input().Decode(got); fault != nil {
			t.Errorf("%s does not take %s: %v", in.typ, got, fault)
		}
	}
}
