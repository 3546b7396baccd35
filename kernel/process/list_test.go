package process_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestList: processes by PID, and those in a state.
func TestList(t *testing.T) {
	t.Parallel()
	s := family(t)
	s.terminate(2)
	row, _ := schema.Lookup("Process.List")
	for _, c := range []struct {
		data string
		want []int64
	}{
		{`{}`, []int64{1, 2, 3, 4, 5}},
		{`{"state":"READY"}`, []int64{1, 3, 5}},
		{`{"state":"TERMINATED"}`, []int64{2, 4}},
		{`{"state":"RUNNING"}`, nil},
	} {
		got, err := s.run(kernel.Operator, "Process.List", c.data)
		if err != nil {
			t.Fatal(err)
		}
		out, err := row.Output().Decode([]byte(got))
		if err != nil {
			t.Fatal(err)
		}
		var pids []int64
		for _, p := range out.(*schema.ProcessListOutput).Processes {
			pids = append(pids, p.PID)
		}
		if !slices.Equal(pids, c.want) {
			t.Errorf("%s: %v", c.data, pids)
		}
	}
	if _, err := s.run(3, "Process.Get", `{"pid":6}`); err == nil || err.Kind != fault.NotFound {
		t.Errorf("got %v", err)
	}
}

// TestNoMeaning: a call of another domain is an error, not an answer.
func TestNoMeaning(t *testing.T) {
	t.Parallel()
	if result, err := process.New(nil).Decide(&kernel.Call{Request: kernel.Request{Input: &schema.PingInput{}}}); err == nil {
		t.Errorf("got %+v", result)
	}
}

// TestRestoreRefuses: an invalid chunk is an error.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	for _, chunk := range []string{
		``, `{`, `{}`, `[{"next":1}][]`, `[{"next":"1"}]`, `[{"strange":1}]`,
		`[{"process":{"pid":1,"agent_id":"a","parent_pid":0,"state":"READY","priority":"","intent":"","role":"","resource_quota":{},"birth_tick":0,"origin":""}}]`,
	} {
		if err := process.New(nil).Restore([]byte(chunk)); err == nil {
			t.Errorf("%s is accepted", chunk)
		}
	}
}

// TestSnapshotIsOfItsMoment: it has the state of its moment, and ends when the writer fails.
func TestSnapshotIsOfItsMoment(t *testing.T) {
	t.Parallel()
	d := process.New(nil)
	spawnMany(t, d, 1000, func(int64) int64 { return 0 })
	want, later := domaintest.Snapshot(t, d), d.Snapshot()
	spawnMany(t, d, 1000, func(int64) int64 { return 0 })
	d.Apply(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessExit.Syscall, Input: &schema.ProcessExitInput{PIDs: []int64{1, 2, 3}}}})
	var got []byte
	testkit.Must(t, later(func(chunk []byte) error { got = append(got, chunk...); return nil }))
	if string(got) != string(want) {
		t.Error("a later change is in an earlier snapshot")
	}
	full := errors.New("disk full")
	for allowed := range 3 {
		left := allowed
		err := d.Snapshot()(func([]byte) error {
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

// FuzzRestore: an accepted snapshot gives a state whose own snapshot is the same.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(`[{"next":3,"ended":{"o":[2]},"prepared":{"pid":3,"resource_quota":{"gpu":1.5}}}]`))
	f.Add([]byte(`[{"next":3},{"process":{"pid":2,"agent_id":"a","parent_pid":1,"state":"TERMINATED","priority":"LOW","intent":"i",` +
		`"role":"r","resource_quota":{},"birth_tick":1,"exit_tick":2,"blocked_until_tick":3,"origin":"o"}}]`))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		d, again := process.New(nil), process.New(nil)
		if d.Restore(chunk) != nil {
			return
		}
		testkit.Must(t, d.Snapshot()(again.Restore))
		if want, got := domaintest.Snapshot(t, d), domaintest.Snapshot(t, again); string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestListOffTheActor: of many processes the actor lists none itself, and the goroutine lists them as of the call.
func TestListOffTheActor(t *testing.T) {
	t.Parallel()
	if !schema.ProcessList.Row().Alone {
		t.Fatal("Process.List does not run alone, and so cannot be computed off the actor")
	}
	d := process.New(nil)
	const n = 2000
	spawnMany(t, d, n, func(int64) int64 { return 0 })
	list := func(origin string) func(context.Context) (kernel.Result, error) {
		result, err := d.Decide(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessList.Syscall, Input: &schema.ProcessListInput{}}, Decision: kernel.Decision{PID: 1, Origin: origin}})
		if err != nil || result.Data != nil || result.Read == nil {
			t.Fatalf("%d bytes on the actor, %v", len(result.Data), err)
		}
		return result.Read
	}
	own, other := list(home), list("elsewhere")
	for pid := int64(1); pid <= n; pid += 2 {
		d.Apply(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessExit.Syscall, Input: &schema.ProcessExitInput{PIDs: []int64{pid}}}})
	}
	if got, err := own(t.Context()); err != nil || bytes.Count(got.Data, []byte(`"state":"READY"`)) != n {
		t.Errorf("%v, %.100s", err, got.Data)
	}
	if got, err := other(t.Context()); err != nil || bytes.Contains(got.Data, []byte(`"pid"`)) {
		t.Errorf("of another origin: %v, %.100s", err, got.Data)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := list(home)(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}
