package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestOutcomesOfTheTable checks that a syscall with an effect is a command that runs alone on its connection, always or depending on
// its input, and that its Outcome is a command of the kernel's own with an EffectEnd.
func TestOutcomesOfTheTable(t *testing.T) {
	t.Parallel()
	found := 0
	for _, row := range schema.Syscalls() {
		if row.Outcome == "" {
			continue
		}
		found++
		end, ok := schema.Lookup(row.Outcome)
		abroad := "beta"
		partial := map[*schema.Syscall]bool{
			schema.SyscallSendMsg.Row():   (&schema.SendMsgInput{ReceiverKernel: &abroad}).TakesLong(),
			schema.SyscallSpawn.Row():     (&schema.SpawnInput{Kernel: &abroad}).TakesLong(),
			schema.SyscallTerminate.Row(): (&schema.TerminateInput{Kernel: &abroad}).TakesLong(),
		}[row]
		if !row.Alone && !partial || row.Kind != schema.KindCommand || !ok || !end.Internal || end.Kind != schema.KindCommand {
			t.Errorf("%s: %+v ends in %+v", row.Type, row, end)
			continue
		}
		in, fault := end.Input().Decode([]byte(`{"intent":1,"type":"a","pid":0,"ran":true,"outcome":null}`))
		if _, ok := in.(*schema.EffectEnd); !ok || fault != nil {
			t.Errorf("%s takes %T, %v", end.Type, in, fault)
		}
	}
	if found == 0 {
		t.Error("no syscall has an effect")
	}
}

// TestEffectEnd checks that the result of a runner is decoded from the journal unchanged.
func TestEffectEnd(t *testing.T) {
	t.Parallel()
	refused := &fault.Fault{Kind: fault.Upstream, Message: "no", Cause: &fault.Fault{Kind: fault.Timeout, Message: "late"}}
	for _, want := range []schema.Outcome{{Data: []byte(`{"a":1.50}`)}, {Err: refused}} {
		text, err := schema.Marshal(&schema.EffectEnd{Intent: 7, Type: "Http.Fetch", Ran: true, Outcome: schema.AppendOutcome(nil, schema.KindCommand, &want)})
		testkit.Must(t, err)
		in, fault := schema.TypeOf[schema.EffectEnd]().Decode(text)
		if fault != nil {
			t.Fatal(fault)
		}
		data, failed := in.(*schema.EffectEnd).Result()
		if diff := cmp.Diff(want, schema.Outcome{Data: data, Err: failed}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
