package capability_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/domaintest"
)

// filled is a registry with a token for each PID from 1 to n.
func filled(t testing.TB, n int64) *capability.Registry {
	t.Helper()
	r := capability.New(pools(), nil)
	for pid := int64(1); pid <= n; pid++ {
		r.Apply(endowed(t, pid))
	}
	return r
}

// endowed is a decided call that gives pid a token.
func endowed(t testing.TB, pid int64) *kernel.Call {
	t.Helper()
	call := request(t, operator, "Capability.Endow", `{"pid":1,"allowed_syscalls":[]}`)
	call.Data = fmt.Appendf(nil, `{"pid":%d,"granted_by":0,"allowed_syscalls":["Memory.*","SYS_ALLOC"],"resource_quotas":{"gpu":0.1},"expires_at_tick":null}`, pid)
	return call
}

func TestSnapshotIsOfItsMoment(t *testing.T) {
	t.Parallel()
	r := filled(t, 3)
	before := domaintest.Snapshot(t, r)
	write := r.Snapshot()
	must(t, r, operator, "Capability.Strip", `{"pids":[1,2]}`, `{"success":true}`)
	endow(t, r, "", 3, 4)
	var late []byte
	testkit.Must(t, write(func(chunk []byte) error { late = append(late, chunk...); return nil }))
	if !bytes.Equal(before, late) {
		t.Errorf("snapshot %s, want %s", late, before)
	}
}

// TestSnapshotChunks: a large state has several chunks, each of which is written and read by itself.
func TestSnapshotChunks(t *testing.T) {
	t.Parallel()
	const many = 2500
	r, again := filled(t, many), capability.New(nil, nil)
	chunks := 0
	testkit.Must(t, r.Snapshot()(func(chunk []byte) error { chunks++; return again.Restore(bytes.Clone(chunk)) }))
	if chunks != 5 || len(again.Holders()) != many {
		t.Errorf("%d chunks restore %d tokens", chunks, len(again.Holders()))
	}
	again.Publish()
	for pid := int64(1); pid <= many; pid++ {
		if got := again.Token(pid); got == nil || got.PID() != pid {
			t.Fatalf("after one Publish the view shows %v for %d", got, pid)
		}
	}
	if !bytes.Equal(domaintest.Snapshot(t, r), domaintest.Snapshot(t, again)) {
		t.Error("restored to another state")
	}
}

func TestSnapshotTellsOfAFailedWrite(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	if err := filled(t, 1).Snapshot()(func([]byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	r := filled(t, 3)
	r.Publish()
	r.Reset()
	if r.Token(2) == nil {
		t.Error("the view changes before it is published")
	}
	if got := domaintest.Snapshot(t, r); len(got) != 0 || len(r.Holders()) != 0 {
		t.Errorf("after a reset it holds %s", got)
	}
	endow(t, r, "", 2)
	r.Publish()
	if r.Token(1) != nil || r.Token(2) == nil || r.Token(3) != nil {
		t.Error("the view shows tokens from before the reset")
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	for _, chunk := range []string{``, `[`, `{}`, `[{"pid":1}]`, `[{"pid":1,"granted_by":0,"allowed_syscalls":[],"resource_quotas":{"gpu":"1"},"expires_at_tick":null}]`} {
		if err := capability.New(nil, nil).Restore([]byte(chunk)); err == nil {
			t.Errorf("%s: restored", chunk)
		}
	}
}

// FuzzRestore: a damaged snapshot is refused, or gives a state whose snapshot is the same.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(`[{"pid":1,"granted_by":0,"allowed_syscalls":["*"],"resource_quotas":{"gpu":0.1},"expires_at_tick":5}]`))
	f.Add([]byte(`[{"pid":0,"granted_by":-1,"allowed_syscalls":[],"resource_quotas":{},"expires_at_tick":null},{"pid":0,"granted_by":7,"allowed_syscalls":[],"resource_quotas":{},"expires_at_tick":null}]`))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		r := capability.New(nil, nil)
		if r.Restore(chunk) != nil {
			return
		}
		state, again := domaintest.Snapshot(t, r), capability.New(nil, nil)
		if err := r.Snapshot()(again.Restore); err != nil {
			t.Fatalf("restore %s: %v", state, err)
		}
		if !bytes.Equal(state, domaintest.Snapshot(t, again)) {
			t.Errorf("%s becomes %s", state, domaintest.Snapshot(t, again))
		}
	})
}
