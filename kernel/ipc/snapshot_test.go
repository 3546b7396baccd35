package ipc_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/ipc"
)

// busy has many mailboxes with a few messages each, more than fit a chunk.
func busy(t domaintest.TB, boxes int64) *shell {
	t.Helper()
	s := &shell{t: t, domain: ipc.New(ipc.Options{})}
	pids := make([]int64, boxes)
	for i := range pids {
		pids[i] = int64(i) + 1
	}
	s.internalQuietly("Ipc.Open", pids)
	for _, pid := range pids {
		for i := range pid % 6 {
			s.quietly(1, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":"%s","intent":"%d","priority":%q}`,
				pid, strings.Repeat("x", 100), i, []string{"LOW", "URGENT", "HIGH"}[i%3]))
		}
	}
	return s
}

// quietly is must without the check of the state.
func (s *shell) quietly(pid int64, typ, data string) {
	s.t.Helper()
	call := s.request(pid, typ, data)
	result, err := s.domain.Decide(call)
	testkit.Must(s.t, err)
	s.journal.Apply(s.domain, call, result.Data)
}

func (s *shell) internalQuietly(typ string, pids []int64) {
	s.quietly(0, typ, `{"pids":`+strings.ReplaceAll(fmt.Sprint(pids), " ", ",")+`}`)
}

// TestSnapshotIsOfItsMoment: a snapshot is written on another goroutine while the state changes, and has none of the
// changes. The race detector checks it.
func TestSnapshotIsOfItsMoment(t *testing.T) {
	t.Parallel()
	const boxes = 2000
	s := busy(t, boxes)
	want, later, last := domaintest.Snapshot(t, s.domain), s.domain.Snapshot(), s.domain.Snapshot()
	var got []byte
	chunks := 0
	var writer sync.WaitGroup
	writer.Go(func() {
		if err := later(func(chunk []byte) error {
			chunks++
			got = append(got, chunk...)
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	for pid := int64(1); pid <= boxes; pid++ {
		s.quietly(pid, "Ipc.Receive", `{"intent":"2"}`) // from the middle
		s.quietly(pid, "Ipc.Receive", `{"max":2}`)
		s.quietly(2, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":1,"priority":"URGENT"}`, pid))
		s.quietly(2, "Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":2}`, pid))
	}
	s.internalQuietly("Ipc.Close", []int64{1, 2, 3})
	writer.Wait()
	if string(got) != string(want) {
		t.Error("a later change is in an earlier snapshot")
	}
	got = nil
	testkit.Must(t, last(func(chunk []byte) error { got = append(got, chunk...); return nil }))
	if string(got) != string(want) {
		t.Error("a change is in an earlier snapshot that is written after it")
	}
	if chunks < 4 {
		t.Errorf("%d chunks", chunks)
	}
	s.check()
}

// TestSnapshotEndsWithItsWriter: after an error of the writer, nothing more is written.
func TestSnapshotEndsWithItsWriter(t *testing.T) {
	t.Parallel()
	s := busy(t, 2000)
	full := errors.New("disk full")
	for allowed := range 4 {
		left := allowed
		err := s.domain.Snapshot()(func([]byte) error {
			if left--; left < 0 {
				return full
			}
			return nil
		})
		if !errors.Is(err, full) || left != -1 {
			t.Errorf("after %d chunks: %v, %d", allowed, err, left)
		}
	}
}

// TestRestoreRefuses: an invalid chunk is an error.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	for _, chunk := range []string{
		``, `{`, `{}`, `[{"last":1}][]`, `[{"last":"1"}]`, `[{"strange":1}]`, `[{"box":{"pid":1}}]`, `[{"box":{"pid":1,"letters":[{}]}}]`,
	} {
		if err := ipc.New(ipc.Options{}).Restore([]byte(chunk)); err == nil {
			t.Errorf("%s is accepted", chunk)
		}
	}
}

// FuzzRestore: an accepted snapshot gives a state whose own snapshot is the same.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(`[{"last":3,"addressed":[1,2]}]`))
	f.Add([]byte(`[{"box":{"pid":1,"letters":[{"msg_id":1,"sender_pid":0,"receiver_pid":1,"intent":"","payload":null,` +
		`"priority":"URGENT","sent_tick":0,"expires_at_tick":4,"text":"{\"a\":[ 1]}"}]}},{"box":{"pid":1,"letters":[]}}]`))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		d := ipc.New(ipc.Options{})
		if d.Restore(chunk) != nil {
			return
		}
		s := &shell{t: t, domain: d}
		if want, got := domaintest.Snapshot(t, d), domaintest.Snapshot(t, s.restored()); string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
