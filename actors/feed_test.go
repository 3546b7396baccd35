package actors_test

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// newCall returns the call that a reader decodes from an echo of the named connection.
func newCall(t tb, conn, message string) kernel.Call {
	t.Helper()
	m, fault := schema.Decode([]byte(echo(message, message)), schema.OsMessage)
	if fault != nil {
		t.Fatalf("decode frame: %v", fault)
	}
	call := kernel.Call{Request: kernel.Request{Caller: kernel.Caller{Conn: conn}, Message: m}}
	if call.Syscall, call.Input, call.Err = m.Request(); call.Err != nil {
		t.Fatalf("read request: %v", call.Err)
	}
	return call
}

// sendTo sends one call in a batch: "message" to the kernel's domain, "other:message" to the other one, "fault" to none.
func sendTo(t tb, feed *actors.Feed, item string) {
	t.Helper()
	said, elsewhere := strings.CutPrefix(item, "other:")
	call := newCall(t, "feed", said)
	switch {
	case item == "fault":
		call.Err = fault.WireSchema.New("fault")
		feed.Send("", call)
	case elsewhere:
		feed.Send(other, call)
	default:
		feed.Send(schema.Kernel, call)
	}
}

// checkFeedAnswers checks that there is one answer for each item, in order.
func checkFeedAnswers(t tb, l *link, items []string) {
	t.Helper()
	l.out.end()
	var want []string
	for _, item := range items {
		want = append(want, strings.TrimPrefix(item, "other:"))
	}
	checkCauses(t, want, newClient(t, l).all())
}

// domainFunc is a domain that only observes calls.
type domainFunc func(*kernel.Call)

func (f domainFunc) Decide(call *kernel.Call) (kernel.Result, error) {
	f(call)
	return kernel.Result{Data: []byte("null")}, nil
}

func (domainFunc) Apply(*kernel.Call) {}

func (domainFunc) Snapshot() func(func([]byte) error) error { return kernel.Stateless{}.Snapshot() }
func (domainFunc) Reset()                                   {}
func (domainFunc) Restore([]byte) error                     { return nil }

// checkCauses compares the causes of the answers, in their order.
func checkCauses(t tb, want []string, answers []answer) {
	t.Helper()
	got := make([]string, len(answers))
	for i, a := range answers {
		got[i] = a.Meta.Causation
	}
	if !slices.Equal(want, got) {
		t.Errorf("answers, by the requests that they name (-want +got):\n%s", cmp.Diff(want, got))
	}
}
