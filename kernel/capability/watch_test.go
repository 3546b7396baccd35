package capability_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/schema"
)

// watcher is the question of a following Syscall.List.
type watcher struct {
	t    testing.TB
	r    *capability.Registry
	pid  int64
	next schema.Request
}

// news returns the next push, "" if there is none.
func (w *watcher) news() (all string) {
	w.t.Helper()
	for {
		data, err := schema.Marshal(w.next.Input)
		testkit.Must(w.t, err)
		result, err := w.r.Decide(request(w.t, caller{pid: w.pid}, w.next.Row.Type, string(data)))
		testkit.Must(w.t, err)
		if result.Wait == kernel.Forever {
			return all
		}
		for _, e := range result.Lasting.Events {
			all += e.Type + " " + string(e.Data)
		}
		w.next = *result.Lasting.Follow
	}
}

// TestWatch: a process gets the list of its syscalls, then a new one after each change by its own grant or an
// ancestor's, and nothing else.
func TestWatch(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	w := &watcher{t: t, r: r, pid: 3, next: schema.CapabilityWatch.With(&schema.ListWatchInput{})}
	const everyone = `"Syscall.Describe","Syscall.Echo","Syscall.List","Syscall.Ping"`
	expect := func(what, want string) {
		t.Helper()
		if got := w.news(); got != want {
			t.Errorf("%s: pushed %q, want %q", what, got, want)
		}
	}
	grant := func(by, pid int64, allowed string) {
		t.Helper()
		r.Publish()
		data := fmt.Sprintf(`{"pid":%d,"allowed_syscalls":[%s]}`, pid, allowed)
		if _, err := run(t, r, caller{pid: by, token: r.Token(by)}, "Capability.Grant", data); err != nil {
			t.Fatal(err)
		}
	}
	expect("at first", `Syscall.Listed {"syscalls":[`+everyone+`]}`)
	grant(0, 2, `"Memory.*","Call:a/*"`)
	expect("another's grant", "")
	grant(2, 3, `"Memory.Get","Call:a/b"`)
	expect("a grant", `Syscall.Listed {"syscalls":["Memory.Get","Syscall.Call",`+everyone+`],"paths":["a/b"]}`)
	grant(2, 3, `"Memory.Get","Call:a/b"`)
	expect("the same again", "")
	grant(0, 2, `"Memory.Get"`)
	expect("the granter's, narrowed", `Syscall.Listed {"syscalls":["Memory.Get",`+everyone+`]}`)
	if _, err := run(t, r, operator, "Capability.Revoke", `{"pid":3}`); err != nil {
		t.Fatal(err)
	}
	expect("revoked", `Syscall.Listed {"syscalls":[`+everyone+`]}`)
}
