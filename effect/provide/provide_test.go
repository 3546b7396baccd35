package provide_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// peer is a provider that does what the test says when it is asked.
type peer struct {
	name string
	over bool
	does func(*provide.Requested)
}

func (p *peer) Name() string                 { return p.name }
func (p *peer) Over() bool                   { return p.over }
func (p *peer) Request(r *provide.Requested) { p.does(r) }

// TestOutcomes: a call has one outcome, whatever its provider does.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	done := func(data string) *schema.CompleteInput { return &schema.CompleteInput{Data: schema.Value(data)} }
	for name, tt := range map[string]struct {
		over bool
		does func(t *testing.T, calls *provide.Calls, by *peer, id string)
		want string
		id   fault.ID
	}{
		"it answers": {want: "1", does: func(t *testing.T, calls *provide.Calls, by *peer, id string) {
			complete(t, calls, by, id, done("1"), "")
		}},
		"it answers twice": {want: "1", does: func(t *testing.T, calls *provide.Calls, by *peer, id string) {
			complete(t, calls, by, id, done("1"), "")
			complete(t, calls, by, id, done("2"), fault.ProviderNoCall)
		}},
		"another answers": {want: "1", does: func(t *testing.T, calls *provide.Calls, by *peer, id string) {
			complete(t, calls, &peer{name: "c-9"}, id, done("2"), fault.ProviderNoCall)
			complete(t, calls, by, id, done("1"), "")
		}},
		"it answers nothing, then something": {want: "1", does: func(t *testing.T, calls *provide.Calls, by *peer, id string) {
			complete(t, calls, by, id, &schema.CompleteInput{}, fault.WireInvalidInput)
			complete(t, calls, by, id, done("1"), "")
		}},
		"it ends": {id: fault.ProviderDied, does: func(_ *testing.T, calls *provide.Calls, by *peer, _ string) { calls.Unbind(by) }},
		"it cannot be asked": {id: fault.WireTooLong, does: func(_ *testing.T, calls *provide.Calls, _ *peer, id string) {
			calls.Refuse(id, fault.WireTooLong.New("x"))
		}},
		"it had ended": {over: true, id: fault.ProviderAway},
		"it is silent": {id: fault.ProviderTimeout, does: func(*testing.T, *provide.Calls, *peer, string) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			calls := provide.New(10*time.Millisecond, func() string { n++; return strconv.Itoa(n) })
			by := &peer{name: "c-1", over: tt.over}
			by.does = func(r *provide.Requested) {
				if r.Event.Type == schema.SyscallRequested {
					tt.does(t, calls, by, r.CallID)
				}
			}
			calls.Bind(registration(), by)
			data, err := calls.Run(context.Background(), &kernel.Job{PID: 7, Conn: "c-2", Do: &kernel.Invocation{Registration: &schema.Registration{Name: "Sum.Add"}}})
			why, _ := errors.AsType[*fault.Fault](err)
			if string(data) != tt.want || (why == nil) != (tt.id == "") || why != nil && why.ID != tt.id {
				t.Errorf("got %s, %v", data, err)
			}
		})
	}
}

// TestCycle: a provider cannot wait for a call that waits for it.
func TestCycle(t *testing.T) {
	t.Parallel()
	n := 0
	calls := provide.New(time.Minute, func() string { n++; return strconv.Itoa(n) })
	by := &peer{name: "c-1"}
	do := &kernel.Invocation{Registration: &schema.Registration{Name: "Sum.Add"}}
	by.does = func(r *provide.Requested) {
		_, err := calls.Run(context.Background(), &kernel.Job{Conn: "c-1", Do: do})
		if !errors.Is(err, fault.ProviderItself) {
			t.Errorf("it calls itself: %v", err)
		}
		complete(t, calls, by, r.CallID, &schema.CompleteInput{Data: schema.Value("1")}, "")
	}
	calls.Bind(registration(), by)
	if data, err := calls.Run(context.Background(), &kernel.Job{Conn: "c-2", Do: do}); err != nil || string(data) != "1" {
		t.Errorf("got %s, %v", data, err)
	}
}

// registration is the call that registers Sum.Add.
func registration() *kernel.Call {
	row := schema.SyscallRegister.Row()
	provider := "connection"
	call := kernel.NewCall(kernel.Request{Syscall: row, Input: &schema.RegisterInput{Name: "Sum.Add", Provider: &provider}}, kernel.Undecided)
	return &call
}

// complete answers a call, which must be refused with an id, or accepted if it is empty.
func complete(t *testing.T, calls *provide.Calls, by *peer, id string, in *schema.CompleteInput, want fault.ID) {
	t.Helper()
	in.CallID = id
	if why := calls.Complete(by, in); (why == nil) != (want == "") || why != nil && why.ID != want {
		t.Errorf("complete: %v", why)
	}
}
