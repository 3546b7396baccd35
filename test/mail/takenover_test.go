package mail_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// recorded counts the entries of a type in the journal of the host.
func (s *site) recorded(t *testing.T, typ string) int {
	t.Helper()
	return strings.Count(s.place.Journal(t), `"type":"`+typ+`"`)
}

// TestMailTakenOver: the numbers of messages and calls between kernels continue after a take-over. The receiving kernel has accepted a message,
// and the sending host is killed before it has the outcome: the host that takes over sends the message again, and it is not accepted twice;
// later messages arrive in order. A spawn is done once, and has its outcome. The same if both hosts are killed, and the receiving kernel is
// taken over.
func TestMailTakenOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*testkit.Patience)
	defer cancel()
	alpha, beta, alpha2, beta2 := &site{name: "alpha"}, &site{name: "beta"}, &site{name: "alpha"}, &site{name: "beta"}
	own := []string{alpha.home(t, mayRun), beta.home(t, mayRun)}
	standbys := []string{alpha2.home(t, "standby"), beta2.home(t, "standby")}
	all := append(own, standbys...)
	b := startBus(t, all...)
	// With the race detector on a busy machine a lease of two seconds might not be renewed in time.
	quorum := fmt.Sprintf(`, acknowledge = "quorum", lease = "%ds"`, testkit.Rounds(2, 5, 5))
	// A host that knows no other one of its kernel keeps the lease, however busy the machine is.
	alpha.configure(t, b, []string{own[0], own[1], standbys[1]}, quorum)
	beta.configure(t, b, []string{own[0], own[1], standbys[0]}, quorum)
	for _, s := range []*site{alpha2, beta2} {
		s.configure(t, b, all, quorum+", standby = true")
	}
	alpha.start(t)
	beta.start(t)
	w := &writer{pid: spawnAt(ctx, t, alpha, "writer"), statuses: map[string]int{}}
	reader, seen := spawnAt(ctx, t, beta, "reader"), map[int64]int{}
	readAll := func(at *site) {
		t.Helper()
		testkit.Must(t, read(ctx, at, reader, []*writer{w}, seen))
		if more := testkit.Value(receive(ctx, at, reader))(t); len(more) > 0 {
			t.Fatalf("%d messages arrived twice: %+v", len(more), more)
		}
	}
	each := testkit.Rounds(1, 2, 2) // messages that wait; the sender waits 3 s for the outcome of each
	// lose has messages and a spawn wait at a host, which is killed while beta is stopped. Then beta handles them.
	lose := func(sender *site, child string) {
		t.Helper()
		taken := beta.recorded(t, "Ipc.Accept")
		beta.process.Signal(t, syscall.SIGSTOP)
		unanswered, stop := context.WithCancel(ctx)
		var call sync.WaitGroup
		call.Go(func() {
			if pid, err := spawnAndEnd(unanswered, sender, child, false); err == nil {
				t.Errorf("%s is pid %d, while beta is stopped", child, pid)
			}
		})
		testkit.Must(t, w.write(ctx, sender, reader, each))
		sender.process.Kill(t)
		stop()
		call.Wait()
		beta.process.Signal(t, syscall.SIGCONT)
		testkit.Eventually(t, "beta accepts the message of a host that was killed", func() bool { return beta.recorded(t, "Ipc.Accept") > taken })
		seen := []byte(`{"key":"seen","value":true}`) // once this is answered, the bus has what is before it
		testkit.Value(insist(ctx, beta, schema.MemorySet.Type, fmt.Sprint("seen ", taken), seen))(t)
	}
	// once checks that a spawn has its outcome at the host that leads now, and was done once.
	once := func(at *site, child string) {
		t.Helper()
		pid := testkit.Value(spawnAndEnd(ctx, alpha2, child, false))(t)
		if list := spawnedAt(ctx, t, at, child); len(list) != 1 || list[0] != pid {
			t.Errorf("%s is pid %d, at beta %v", child, pid, list)
		}
	}

	testkit.Value(spawnAndEnd(ctx, alpha, "first", false))(t)
	testkit.Must(t, w.write(ctx, alpha, reader, 1))
	testkit.Eventually(t, "the first message arrives", func() bool { return beta.recorded(t, "Ipc.Accept") == 1 })
	lose(alpha, "second")
	alpha2.start(t)
	testkit.Must(t, w.write(ctx, alpha2, reader, 2))
	readAll(beta)
	once(beta, "second")

	lose(alpha2, "third")
	beta.process.Kill(t)
	beta2.start(t)
	alpha2.start(t)
	testkit.Must(t, w.write(ctx, alpha2, reader, 2))
	readAll(beta2)
	once(beta2, "second")
	once(beta2, "third")
	if w.statuses["QUEUED"] < 2*each {
		t.Errorf("%v: at least %d messages must be queued", w.statuses, 2*each)
	}
}
