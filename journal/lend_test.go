package journal_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// lending is a committer on a disk whose fsyncs a test counts, and may hold.
type lending struct {
	t     *testing.T
	log   *journal.Log
	c     *journal.Committer
	begun atomic.Int64
	gate  chan struct{} // nil: fsyncs are not held
	seq   uint64        // of the last entry appended

	mu    sync.Mutex
	acked uint64 // the last entry acknowledged
	acks  *sync.Cond
}

func lend(t *testing.T) *lending {
	t.Helper()
	l := &lending{t: t}
	l.acks = sync.NewCond(&l.mu)
	disk := faultfs.NewDisk()
	l.log, _ = open(t, journal.Options{Dir: dir, FS: disk})
	disk.Hook = func(op faultfs.Op) {
		if op.Kind == faultfs.Sync {
			l.begun.Add(1)
			if l.gate != nil {
				<-l.gate
			}
		}
	}
	l.c = journal.NewCommitter(l.log, func(through uint64, err error) {
		if err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		l.acked = through
		l.mu.Unlock()
		l.acks.Broadcast()
	})
	return l
}

// await returns when entry seq is acknowledged.
func (l *lending) await(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.acked < seq {
		l.acks.Wait()
	}
}

func (l *lending) acknowledged() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// request flushes one more entry and asks for it to be synced, on behalf of who holds that ticket.
func (l *lending) request(ticket uint64) {
	l.seq++
	l.log.Append(entry(l.seq, 0))
	check(l.t, l.log.Flush())
	l.c.RequestFor(ticket)
}

// lent is the ticket of a goroutine that is needed.
func (l *lending) lent() uint64 {
	l.t.Helper()
	ticket := l.c.Lend()
	if ticket == 0 {
		l.t.Fatal("a goroutine is not needed, though nobody is at work")
	}
	return ticket
}

// want waits for everybody, and checks what was begun and acknowledged.
func (l *lending) want(begun int64, acked uint64) {
	l.t.Helper()
	synctest.Wait()
	if got := l.acknowledged(); l.begun.Load() != begun || got != acked {
		l.t.Errorf("%d fsyncs and entry %d acknowledged, want %d and %d", l.begun.Load(), got, begun, acked)
	}
}

func (l *lending) end() {
	l.t.Helper()
	l.c.Close()
	check(l.t, l.log.Close())
}

// A request for a lent goroutine alone waits for it, and is served before Return returns. No second one is needed meanwhile.
// Whatever else is requested the committer's own serves at once.
func TestCommitterLent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lend(t)
		ticket := l.lent()
		if l.c.Lend() != 0 {
			t.Error("two goroutines are needed")
		}
		l.request(ticket)
		l.want(0, 0)
		l.c.Return()
		if l.acknowledged() != 1 {
			t.Error("Return did not serve the request")
		}
		l.request(0)
		l.want(2, 2)
		l.request(ticket) // which is back
		l.want(3, 3)
		ticket = l.lent()
		l.request(0)
		l.want(4, 4)
		l.request(ticket)
		l.want(4, 4)
		l.request(0) // takes what was left with it
		l.want(5, 6)
		l.c.Return() // nothing is requested
		l.want(5, 6)
		l.end()
	})
}

// What is requested while a lent goroutine syncs is served by the committer's own: the lent one goes back to its work, and no
// other is needed.
func TestCommitterLentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lend(t)
		l.gate = make(chan struct{})
		l.request(l.lent())
		var back sync.WaitGroup
		back.Go(l.c.Return)
		l.want(1, 0)
		if l.c.Lend() != 0 {
			t.Error("another goroutine is needed while an fsync runs")
		}
		l.request(0)
		l.gate <- struct{}{}
		back.Wait()
		l.want(2, 1)
		l.gate <- struct{}{}
		l.want(2, 2)
		l.gate = nil
		l.end()
	})
}

// No request is lost among goroutines that come and go: each waits for its entry, and one that is never acknowledged is a
// deadlock.
func TestCommitterLentByMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each = 300
		l := lend(t)
		var owner sync.Mutex
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				for i := range each {
					var ticket uint64
					if (n+i)%3 > 0 {
						ticket = l.c.Lend()
					}
					owner.Lock()
					l.request(ticket)
					mine := l.seq
					owner.Unlock()
					if ticket != 0 {
						l.c.Return()
					}
					l.await(mine)
				}
			})
		}
		all.Wait()
		l.want(l.begun.Load(), 8*each)
		l.end()
	})
}
