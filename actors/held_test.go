package actors_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestDomainDiesBeforeSync ends a domain while its answers wait for the disk: their callers are answered once, and the
// audit log, which still has the calls, continues to serve others.
func TestDomainDiesBeforeSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		states[schema.Memory].apply = func(call *kernel.Call) {
			if word(call) == "die" {
				panic(internals)
			}
		}
		s := startWith(t, states.domains())
		gate := s.holdSyncs()
		a, b, c := s.connect(), s.connect(), s.connect()
		a.send(set("a", "x"))
		synctest.Wait()
		b.send(set("b", "die"))
		expect(t, b, "b 500")
		c.send(spawn("c", "s")) // takes a batch from the pool, if one was recycled
		synctest.Wait()
		gate.open()
		expect(t, c, "c 1")
		synctest.Wait()
		checkCauses(t, []string{"a"}, a.pending())
		c.send(processes("d"))
		expect(t, c, `d "s"`)
		if n := strings.Count(s.log.String(), "actor panicked"); n != 1 {
			t.Errorf("%d actors panicked, want only the domain:\n%s", n, s.log.String())
		}
		if err := s.end(); err == nil || !strings.Contains(err.Error(), internals) {
			t.Errorf("close kernel: %v, want the panic", err)
		}
	})
}

// TestAuditLogDies shows that a kernel whose audit log fails ends like one whose domain fails: every caller is answered,
// and none waits forever. A domain that answers with something else than JSON causes it.
func TestAuditLogDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		states[schema.Memory].decide = func(*kernel.Call, []string) (kernel.Result, bool, error) {
			return kernel.Result{Data: []byte("no JSON")}, true, nil
		}
		s := startWith(t, states.domains())
		a, b := s.connect(), s.connect()
		a.send(set("a", "x"))
		<-s.kernel.Stopping()
		expect(t, a, "a 500")
		b.send(ping("b", "1"))
		expect(t, b, "b 500")
		if err := s.end(); err == nil || !strings.Contains(err.Error(), "domain/journal") {
			t.Errorf("close kernel: %v, want the panic", err)
		}
	})
}

// TestCloseAwaitsReaders shows that Close returns after the last goroutine that reads the journal for an answer, also if
// the connection that asked has failed and nothing waits for the answer.
func TestCloseAwaitsReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newRecorders().domains())
		held := make(chan struct{})
		s.disk.Hook = func(op faultfs.Op) {
			if op.Kind == faultfs.Sync && strings.HasSuffix(op.Path, ".ndjson") {
				<-held
			}
		}
		l := newLink(schema.OsMessage, schema.MaxLine, 10)
		c := s.serve(l)
		c.send(ping("a", "1")) // its answer does not fit, so a goroutine still writes it
		synctest.Wait()
		c.send(query("b", "Audit.Log", "{}")) // syncs the ping's entry first
		synctest.Wait()
		l.breaks = func() { panic(internals) }
		l.out.refuse(net.ErrClosed)
		<-c.done
		synctest.Wait()
		if !strings.Contains(s.log.String(), "actor panicked") {
			t.Error("the connection did not panic")
		}
		closed := make(chan error, 1)
		go func() { closed <- s.stopped() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("Close returned (%v) while a goroutine reads the journal", err)
			closed <- err
		default:
		}
		close(held)
		if err := <-closed; err != nil {
			t.Errorf("close kernel: %v", err)
		}
	})
}
