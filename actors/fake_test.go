package actors_test

import (
	"errors"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// fake is a domain that does what the first word of a Syscall.Echo's message says:
//
//	hold    waits in Decide until the test releases it
//	fail    returns a plain error
//	refuse  returns an error made for clients
//	panic   panics in Decide
//	die     panics in Apply
//	stop    has the kernel end
//
// It answers everything else, and records what it was asked, in order.
type fake struct {
	kernel.Stateless
	released chan struct{}
	opened   func()

	mu      sync.Mutex
	decided []string
	applied []string
}

// internals is the text of a fake's panics and errors, which only the log may have.
const internals = "internals of the fake"

func newFake() *fake {
	f := &fake{released: make(chan struct{})}
	f.opened = sync.OnceFunc(func() { close(f.released) })
	return f
}

// release lets one held call continue; it waits until there is one.
func (f *fake) release() { f.released <- struct{}{} }

// open lets all held calls continue, including later ones.
func (f *fake) open() { f.opened() }

func (f *fake) Decide(call *kernel.Call) (kernel.Result, error) {
	said := text(call)
	f.note(&f.decided, call.Caller.Conn+" "+said)
	switch word, _, _ := strings.Cut(said, " "); word {
	case "hold":
		<-f.released
	case "fail":
		return kernel.Result{}, errors.New(internals)
	case "refuse":
		return kernel.Result{}, fault.MemoryChanged.New("refused")
	case "panic":
		panic(internals)
	}
	if in, ok := call.Input.(*schema.PingInput); ok {
		return kernel.Result{Data: append(append([]byte(`{"payload":`), in.Payload...), '}')}, nil
	}
	data := append(schema.AppendString([]byte(`{"echo":`), said), '}')
	return kernel.Result{Data: data, Shutdown: said == "stop"}, nil
}

func (f *fake) Apply(call *kernel.Call) {
	said := text(call)
	f.note(&f.applied, call.Caller.Conn+" "+said)
	if strings.HasPrefix(said, "die") {
		panic(internals)
	}
}

func (f *fake) note(list *[]string, entry string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*list = append(*list, entry)
}

// history returns what was decided so far.
func (f *fake) history() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.decided...)
}

// changes returns what was applied so far.
func (f *fake) changes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.applied...)
}

func text(call *kernel.Call) string {
	switch in := call.Input.(type) {
	case *schema.EchoInput:
		return in.Message
	case *schema.PingInput:
		return string(in.Payload)
	}
	return call.Message.Type
}
