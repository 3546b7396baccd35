package actors_test

import (
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/schema"
)

// TestSilentProvider: the caller of a syscall whose provider never answers is told so after a time, and an answer that comes later is
// refused. A call that does not fit the line of its provider is refused at once.
func TestSilentProvider(t *testing.T) {
	t.Parallel()
	domain := self.New(nil)
	s := startHosting(t, faultfs.NewDisk(), mount(domain), idempotency.New(), textLog, actors.Hosting{}, domain.Registry(), answering(time.Millisecond))
	provider, caller := s.connect(), s.serve(newLink(schema.OsMessage, 1<<20, unbounded))
	provider.send(frame(schema.OsMessage, schema.KindCommand, "Syscall.Register", `{"name":"Sum.Add","kind":"query","input":{},"provider":"connection"}`, "r"))
	provider.take(1)
	call := func(data string) answer {
		caller.send(frame(schema.OsMessage, schema.KindQuery, "Sum.Add", data, "c"))
		return caller.next()
	}
	if a := call(`{}`); a.Code != "504" {
		t.Errorf("got %s", a)
	}
	asked := provider.next()
	_, id, _ := strings.Cut(string(asked.Data), `"call_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if told := provider.next(); told.Type != "Syscall.Cancelled" || string(told.Data) != `{"call_id":"`+id+`"}` {
		t.Errorf("the provider of a call that is over is told %s", told)
	}
	provider.send(frame(schema.OsMessage, schema.KindCommand, "Syscall.Complete", `{"call_id":"`+id+`","data":1}`, "d"))
	if a := provider.next(); a.Code != "404" {
		t.Errorf("an answer that comes late: %s", a)
	}
	if a := call(`"` + strings.Repeat("x", schema.MaxLine) + `"`); a.Code != "413" {
		t.Errorf("a call that is too long for its provider: %s", a)
	}
	caller.send(frame(schema.OsMessage, schema.KindQuery, "Sum.Add", `{}`, strings.Repeat("\x01", 2700)))
	if a := caller.next(); a.Code != "413" {
		t.Errorf("a call whose id is too long for its provider: %s", a)
	}
	provider.endInput()
	<-provider.done
	if a := call(`{}`); a.Code != "503" {
		t.Errorf("after its end: %s", a)
	}
}
