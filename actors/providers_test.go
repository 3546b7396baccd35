package actors_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/schema"
)

// TestSilentProvider: if a provider never answers, the caller gets an error after a time, and a later answer is refused. A
// call that does not fit the line of its provider is refused immediately.
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
		t.Errorf("the provider of a call that has ended gets %s", told)
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

// TestProviderAtOnce: who can see a registration can call it, although its answer waits for an earlier one that is being
// stored.
func TestProviderAtOnce(t *testing.T) {
	t.Parallel()
	domain, store := self.New(nil), make(slowBlobs)
	s := startHosting(t, faultfs.NewDisk(), mount(domain), idempotency.New(), textLog, actors.Hosting{}, domain.Registry(), store, answering(time.Millisecond))
	const limit = 4096
	provider, caller := s.serve(newLink(schema.OsMessage, limit, unbounded)), s.connect()
	provider.send(
		frame(schema.OsMessage, schema.KindQuery, "Syscall.Ping", `{"payload":"`+strings.Repeat("x", limit-150)+`"}`, "p"),
		frame(schema.OsMessage, schema.KindCommand, "Syscall.Register", `{"name":"Sum.Add","kind":"query","input":{},"provider":"connection"}`, "r"))
	<-store // the answer to the ping does not fit a line
	caller.send(frame(schema.OsMessage, schema.KindQuery, "Sum.Add", `{}`, "c"))
	if a := caller.next(); a.Code != "504" { // its provider was asked, and has not answered
		t.Errorf("got %s", a)
	}
	store <- struct{}{}
}

// slowBlobs is a store that sends when a Put begins, and waits until the test sends.
type slowBlobs chan struct{}

func (s slowBlobs) Put(int64, string, bool, io.Reader) (schema.BlobPointer, error) {
	s <- struct{}{}
	<-s
	return schema.BlobPointer{}, errors.New("not stored")
}

func (s slowBlobs) Read(int64, string, schema.BlobPointer, int64) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

// TestProgressNotRead: a caller that reads gets each report of progress that is not too soon; for a caller that does not
// read, only its answer is stored.
func TestProgressNotRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		room, want int
		every      time.Duration
	}{
		"it reads":            {unbounded, 20, 100 * time.Millisecond},
		"it is told too soon": {unbounded, 4, 99 * time.Millisecond / 5},
		"it does not read":    {64, 1, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				domain := self.New(nil)
				s := startHosting(t, faultfs.NewDisk(), mount(domain), idempotency.New(), textLog, actors.Hosting{}, domain.Registry(), answering(time.Hour))
				link := newLink(schema.OsMessage, schema.MaxLine, tt.room)
				provider, caller := s.connect(), s.serve(link)
				provider.send(frame(schema.OsMessage, schema.KindCommand, "Syscall.Register", `{"name":"Sum.Add","kind":"query","input":{},"provider":"connection"}`, "r"))
				provider.take(1)
				m := schema.Message{Kind: schema.KindQuery, Type: "Sum.Add", Data: []byte(`{}`), Meta: schema.Metadata{Present: true, ID: "c", Progress: true}}
				caller.send(strings.TrimSuffix(string(schema.AppendMessage(nil, &m)), "\n"))
				_, id, _ := strings.Cut(string(provider.next().Data), `"call_id":"`)
				id, _, _ = strings.Cut(id, `"`)
				for range 20 {
					provider.send(frame(schema.OsMessage, schema.KindCommand, "Syscall.Progress", `{"call_id":"`+id+`","progress":1}`, "p"))
					provider.take(1)
					time.Sleep(tt.every)
				}
				provider.send(frame(schema.OsMessage, schema.KindCommand, "Syscall.Complete", `{"call_id":"`+id+`","data":1}`, "d"))
				provider.take(1)
				link.out.widen(unbounded)
				told := 0
				a := caller.next()
				for ; a.Kind == schema.KindEvent; a = caller.next() {
					told++
				}
				if told != tt.want || string(a.Data) != "1" {
					t.Errorf("%d reports, want %d, then %s", told, tt.want, a)
				}
			})
		})
	}
}
