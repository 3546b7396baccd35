package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestProc(t *testing.T) {
	t.Parallel()
	ended := process(3, home)
	ended.State = "TERMINATED"
	d := newDomain(t, domaintest.Table{process(1, home), process(2, other), ended})
	status := func(pid int64, state, origin string) string {
		return fmt.Sprintf(`{"pid":%d,"agent_id":"agent-%d","parent_pid":0,"state":%q,"priority":"NORMAL","intent":"","role":"",`+
			`"resource_quota":{},"birth_tick":0,"origin":%q}`, pid, pid, state, origin)
	}
	const nowhere = "not found"
	for _, tc := range []struct {
		pid               int64
		origin, key, want string
	}{
		{1, home, "proc/cmdline", `{"Root":"https://home.local/"}`},
		{2, other, "/proc/cmdline", `{"Root":"https://home.local/"}`},
		{1, home, "proc/meminfo", `{"keys":0,"bytes":0}`},
		{1, home, "/proc/self/status", status(1, "READY", home)},
		{2, other, "proc/self/status", status(2, "READY", other)},
		{1, home, "proc/1/status", status(1, "READY", home)},
		{1, home, "proc/3/status", status(3, "TERMINATED", home)},
		{0, home, "proc/2/status", status(2, "READY", other)},
		{0, home, "proc/self/status", `{"pid":0,"state":"RUNNING","origin":"https://home.local/"}`},
		{0, home, "proc/0/status", `{"pid":0,"state":"RUNNING","origin":"https://home.local/"}`},
		{0, home, "proc/origins", `{}`},
		{1, home, "proc/origins", nowhere},
		{1, home, "proc/0/status", nowhere},
		{1, home, "proc/2/status", nowhere},
		{2, other, "proc/1/status", nowhere},
		{1, home, "proc/4/status", nowhere},
		{9, home, "proc/self/status", nowhere},
		{1, home, "proc/01/status", nowhere},
		{1, home, "proc/-1/status", nowhere},
		{1, home, "proc/99999999999999999999/status", nowhere},
		{1, home, "proc/status", nowhere},
		{1, home, "proc/1", nowhere},
		{1, home, "proc/1/status/x", nowhere},
		{1, home, "proc/cmdline/x", nowhere},
		{1, home, "proc/x", nowhere},
		{1, home, "/proc/x", nowhere},
		{1, home, "/proc/9/status", nowhere},
	} {
		got, err := run(t, d, tc.pid, tc.origin, "Memory.Get", `{"key":"`+tc.key+`"}`)
		if tc.want == nowhere {
			domaintest.WantError(t, err, fault.NotFound, "Key not found: "+tc.key)
		} else if err != nil || got != tc.want {
			t.Errorf("pid %d, %s: %s, %v, want %s", tc.pid, tc.key, got, err, tc.want)
		}
	}
}

func TestProcIsReadOnly(t *testing.T) {
	t.Parallel()
	d := newDomain(t, domaintest.Table{process(1, home)})
	for _, key := range []string{"proc/cmdline", "proc/system/summary", "proc/1/status"} {
		for _, pid := range []int64{0, 1} {
			want := "Operation not allowed: /" + key + " cannot be written: the kernel makes proc/ itself, and it is read-only"
			_, err := run(t, d, pid, home, "Memory.Set", `{"key":"/`+key+`","value":1}`)
			domaintest.WantError(t, err, fault.Forbidden, want)
			_, err = run(t, d, pid, home, "Memory.Delete", `{"key":"`+key+`"}`)
			domaintest.WantError(t, err, fault.Forbidden, want)
		}
	}
}

func TestProcIsListed(t *testing.T) {
	t.Parallel()
	d := newDomain(t, domaintest.Table{process(1, home), process(2, other), process(3, home)})
	if _, err := run(t, d, 1, home, "Memory.Set", `{"key":"notes/1","value":1}`); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		pid                int64
		origin, data, want string
	}{
		{1, home, `{}`, `{"keys":["/notes/1"]}`},
		{1, home, `{"prefix":"/proc/"}`, `{"keys":["/proc/1/status","/proc/3/status","/proc/cmdline","/proc/meminfo","/proc/self/status"]}`},
		{2, other, `{"prefix":"proc/"}`, `{"keys":["/proc/2/status","/proc/cmdline","/proc/meminfo","/proc/self/status"]}`},
		{
			0, home, `{"prefix":"proc/"}`,
			`{"keys":["/proc/0/status","/proc/1/status","/proc/2/status","/proc/3/status","/proc/cmdline","/proc/meminfo","/proc/origins","/proc/self/status"]}`,
		},
		{9, home, `{"prefix":"proc/c"}`, `{"keys":["/proc/cmdline"]}`},
		{9, home, `{"prefix":"proc/self"}`, `{"keys":[]}`},
		{1, home, `{"prefix":"proc/3"}`, `{"keys":["/proc/3/status"]}`},
		{1, home, `{"prefix":"proc/3/status/x"}`, `{"keys":[]}`},
		{1, home, `{"prefix":"proc/","limit":2}`, `{"keys":["/proc/1/status","/proc/3/status"],"next":"/proc/3/status"}`},
		{1, home, `{"prefix":"proc/","limit":2,"cursor":"/proc/3/status"}`, `{"keys":["/proc/cmdline","/proc/meminfo"],"next":"/proc/meminfo"}`},
		{1, home, `{"prefix":"proc/","limit":2,"cursor":"/proc/meminfo"}`, `{"keys":["/proc/self/status"]}`},
	} {
		if got, err := run(t, d, tc.pid, tc.origin, "Memory.List", tc.data); err != nil || got != tc.want {
			t.Errorf("pid %d, %s: %s, %v, want %s", tc.pid, tc.data, got, err, tc.want)
		}
	}
}

// TestProcListsWhatCanBeRead pages through process tables of every size up to three digits.
func TestProcListsWhatCanBeRead(t *testing.T) {
	t.Parallel()
	var processes domaintest.Table
	for size := range 130 {
		d := newDomain(t, processes)
		var want []string
		for pid := range size {
			want = append(want, fmt.Sprintf("/proc/%d/status", pid+1))
		}
		if size > 0 {
			want = append(want, "/proc/self/status")
		}
		want = append(want, "/proc/cmdline", "/proc/meminfo")
		slices.Sort(want)
		got, _ := listAll(t, d, `"limit":7,"prefix":"/proc/"`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("keys of %d processes (-want +got):\n%s", size, diff)
		}
		for _, key := range got {
			if _, err := run(t, d, 1, home, "Memory.Get", `{"key":"`+key+`"}`); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		processes = append(processes, process(int64(size+1), home))
	}
}

// counted is a table of that many processes that counts the reads.
type counted struct {
	last   int64
	looked atomic.Int64
}

func (c *counted) Process(pid int64) *schema.Descriptor {
	c.looked.Add(1)
	if pid < 1 || pid > c.last {
		return nil
	}
	return &schema.Descriptor{PID: pid, Origin: "elsewhere"}
}

// TestProcIsListedOffTheActor lists one process's view of a million: the actor reads a few, and the goroutine ends
// when its caller disconnects.
func TestProcIsListedOffTheActor(t *testing.T) {
	t.Parallel()
	processes := &counted{last: 1 << 20}
	d, err := memory.New([]byte(`{}`), processes)
	testkit.Must(t, err)
	call := request(t, 1, home, "Memory.List", `{"prefix":"proc/"}`)
	if in, ok := call.Input.(interface{ TakesLong() bool }); !ok || !in.TakesLong() {
		t.Error("the call does not run alone, and so cannot be computed off the actor")
	}
	result, err := d.Decide(call)
	if looked := processes.looked.Load(); err != nil || result.Read == nil || looked > 64 {
		t.Fatalf("the actor read %d processes; %v", looked, err)
	}
	if done, err := result.Read(t.Context()); err != nil || string(done.Data) != `{"keys":["/proc/cmdline","/proc/meminfo"]}` {
		t.Errorf("%s, %v", done.Data, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	processes.looked.Store(0)
	if _, err := result.Read(ended); !errors.Is(err, context.Canceled) || processes.looked.Load() > 2 {
		t.Errorf("it read %d processes after its end: %v", processes.looked.Load(), err)
	}
}
