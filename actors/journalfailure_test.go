package actors_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// TestLostGrantOpensNothing shows that no process can use a grant whose entry was lost, while the registry still rebuilds
// its state: the caller of the grant got the answer that it did not happen.
func TestLostGrantOpensNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		registry := &publisher{recorder: states[schema.Capability]}
		domains := states.domains()
		domains[schema.Capability] = registry
		s := startWith(t, domains)
		registry.view = s.tokens
		registry.Publish()
		restoring := make(chan struct{})
		s.restoring = func(name schema.Domain) {
			if name == schema.Capability {
				<-restoring
			}
		}
		operator := s.connect()
		agent := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		s.room.full(syscall.ENOSPC)
		operator.send(grant("a", 7))
		synctest.Wait()
		s.room.free()
		operator2 := s.connect()
		operator2.send(ping("b", "1")) // finds out that there is room
		synctest.Wait()
		agent.send(set("c", "x"))
		synctest.Wait()
		close(restoring)
		expect(t, operator, "a 503")
		if applied := states[schema.Memory].read(); len(applied) != 0 {
			t.Errorf("an agent without a token wrote %v", applied)
		}
		if got := agent.pending(); len(got) != 1 || got[0].Kind != schema.KindError {
			t.Errorf("answers %v, want a refusal", show(got))
		}
		agent.send(set("d", "x"))
		expect(t, agent, "d 403")
		operator.send(grant("e", 7))
		expect(t, operator, "e 1")
		agent.send(set("f", "x"))
		expect(t, agent, "f 1")
	})
}

// publisher is a recorder whose commands grant tokens, which other domains see when they are published.
type publisher struct {
	*recorder

	view *tokens
}

func (p *publisher) Publish() {
	held := map[int64]*kernel.Token{}
	for _, one := range p.read() {
		if one == "grant-7" {
			held[7] = allowed(7, "*")
		}
	}
	p.view.mu.Lock()
	defer p.view.mu.Unlock()
	p.view.held = held
}

// TestFailedSyncWhileRestoring fails a sync while states are rebuilt because of a failed write: the calls that the domains
// hold meanwhile are answered, so that the kernel can end.
func TestFailedSyncWhileRestoring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startReserving(t, newRecorders().domains(), actors.Hosting{})
		gate := s.holdSyncs()
		release := make(chan struct{})
		s.restoring = func(name schema.Domain) {
			if name == schema.Process {
				<-release
			}
		}
		a, b, c := s.connect(), s.connect(), s.connect()
		a.send(set("a", "x"))
		synctest.Wait()
		s.disk.Leave(0)
		for range 20 {
			b.send(set("b", strings.Repeat("y", 1000)))
		}
		expect(t, b, slices.Repeat([]string{"b 503"}, 20)...)
		c.send(set("c", "z"))
		synctest.Wait()
		s.room.breakSync(syscall.EIO)
		gate.open()
		<-s.kernel.Stopping()
		expect(t, a, "a 503")
		close(release)
		expect(t, c, "c 503")
		if err := s.end(); !errors.Is(err, syscall.EIO) {
			t.Errorf("close kernel: %v, want the failed fsync", err)
		}
	})
}

// TestTickOfLostEntry loses the entry that moved the clock, and ends the kernel: its snapshots have the tick of the last
// entry in the journal, so that a start from them has the same clock as one from the journal.
func TestTickOfLostEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		saved := &savedTicks{}
		s := startHosting(t, faultfs.NewDisk(), newRecorders().domains(), idempotency.New(), textLog, actors.Hosting{}, &record.Snapshots{Store: saved})
		operator := s.connect()
		operator.send(on("a", `"tick":3`))
		expect(t, operator, "a 1")
		s.room.full(syscall.ENOSPC)
		operator.send(on("b", `"tick":10`))
		expect(t, operator, "b 503")
		synctest.Wait()
		s.room.free()
		operator.endInput()
		<-operator.done
		if err := s.stopped(); err != nil {
			t.Fatalf("close kernel: %v", err)
		}
		if err := s.kernel.SaveSnapshots(); err != nil {
			t.Fatalf("save snapshots: %v", err)
		}
		last := s.entries()[len(s.entries())-1]
		if got := slices.Compact(saved.ticks); last.Tick != 3 || !slices.Equal(got, []int64{last.Tick}) {
			t.Errorf("snapshots have the ticks %d, and the journal's last entry tick %d; want 3", got, last.Tick)
		}
	})
}

// savedTicks records the ticks of the snapshots that are saved.
type savedTicks struct {
	record.Store

	ticks []int64
}

// Save implements record.Store.
func (s *savedTicks) Save(_ context.Context, _ string, _ journal.Head, tick int64, _ func(func([]byte) error) error) error {
	s.ticks = append(s.ticks, tick)
	return nil
}

// checkReplay compares the state with the one that the next start would build.
func checkReplay(t testing.TB, s *system, states recorders) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(s.replayed(), states.applied()); diff != "" {
		t.Errorf("state (-replayed +running):\n%s", diff)
	}
}

// checkNoGap checks that the entries are numbered from 1 on.
func checkNoGap(t testing.TB, s *system) {
	t.Helper()
	for i, e := range s.entries() {
		if e.Seq != uint64(i+1) {
			t.Errorf("entry %d has seq %d", i+1, e.Seq)
		}
	}
}
