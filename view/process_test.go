package view_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// TestTreeOf: each process is below its parent, siblings are by PID, and no process is left out.
func TestTreeOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		parents map[int64]int64 // by PID
		pids    []int64
		depths  []int
	}{
		{"nothing", nil, nil, nil},
		{"no parents", map[int64]int64{1: 0, 2: 0}, []int64{1, 2}, []int{0, 0}},
		{"families", map[int64]int64{1: 0, 2: 0, 3: 1, 4: 3, 5: 1, 6: 2}, []int64{1, 3, 4, 5, 2, 6}, []int{0, 1, 2, 1, 0, 1}},
		{"a parent that is not listed", map[int64]int64{5: 2, 6: 5, 7: 0}, []int64{5, 6, 7}, []int{0, 1, 0}},
		{"a cycle", map[int64]int64{1: 2, 2: 1, 3: 0}, []int64{3, 1, 2}, []int{0, 0, 1}},
		{"its own parent", map[int64]int64{4: 4, 5: 4}, []int64{4, 5}, []int{0, 0}},
	} {
		var list []schema.Descriptor
		for pid := range int64(10) {
			if parent, ok := tt.parents[pid]; ok {
				list = append(list, schema.Descriptor{PID: pid, ParentPID: parent})
			}
		}
		pids, depths := tree(list)
		if !slices.Equal(pids, tt.pids) || !slices.Equal(depths, tt.depths) {
			t.Errorf("%s: %v at depths %v, want %v at %v", tt.name, pids, depths, tt.pids, tt.depths)
		}
	}
}

// TestTreeOfTwins: a process that another kernel lists twice is in the tree twice, not once for each listed ancestor.
func TestTreeOfTwins(t *testing.T) {
	t.Parallel()
	var list []schema.Descriptor
	for pid := range int64(60) {
		list = append(list, schema.Descriptor{PID: pid + 1, ParentPID: pid}, schema.Descriptor{PID: pid + 1, ParentPID: pid})
	}
	if pids, _ := tree(list); len(pids) != len(list) {
		t.Errorf("%d of %d processes", len(pids), len(list))
	}
}

// TestDeepTree: a tree may have any depth.
func TestDeepTree(t *testing.T) {
	t.Parallel()
	const deep = 100_000
	list := make([]schema.Descriptor, deep)
	for i := range list {
		list[i] = schema.Descriptor{PID: int64(i + 1), ParentPID: int64(i)}
	}
	pids, depths := tree(list)
	if len(pids) != deep || pids[deep-1] != deep || depths[deep-1] != deep-1 {
		t.Errorf("%d processes, want all %d, the last one deepest", len(pids), deep)
	}
}

// TestRowIsBounded: a long name or command does not push other columns out of sight.
func TestRowIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\x1b", 128)
	row, err := row(schema.Descriptor{PID: 7, AgentID: long, State: "RUNNING", Hosted: schema.Hosted{Command: []string{long}}})
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(row, "|"); len(text) > 140 || strings.Contains(text, "\x1b") || !strings.HasPrefix(text, `7|x\u001bx`) {
		t.Errorf("the row is %q", text)
	}
}

// TestEnded: an agent has ended when its process and its program have ended, in either order.
func TestEnded(t *testing.T) {
	t.Parallel()
	command, exit, os := []string{"x"}, &schema.Exit{Reason: "exited"}, ptr(int64(7))
	for _, tt := range []struct {
		name string
		d    schema.Descriptor
		want bool
	}{
		{"running", schema.Descriptor{State: "RUNNING", Hosted: schema.Hosted{Command: command, OSPID: os}}, false},
		{"between restarts", schema.Descriptor{State: "READY", Hosted: schema.Hosted{Command: command, Exit: exit}}, false},
		{"terminated, its program still runs", schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Command: command, OSPID: os, Exit: exit}}, false},
		{"terminated, its exit not recorded", schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Command: command}}, false},
		{"gone", schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Command: command, Exit: exit}}, true},
		{"without a program", schema.Descriptor{State: "TERMINATED"}, true},
	} {
		if got := view.Ended(&tt.d); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestPsTexts: ps shows a state with its details, and a command for a shell, on one line and of bounded length.
func TestPsTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		d    schema.Descriptor
		want string
	}{
		{schema.Descriptor{State: "RUNNING"}, "RUNNING"},
		{schema.Descriptor{State: "RUNNING", Hosted: schema.Hosted{User: ptr("build")}}, "RUNNING, as build"},
		{schema.Descriptor{State: "BLOCKED", BlockedUntilTick: ptr(int64(30))}, "BLOCKED until 30"},
		{schema.Descriptor{State: "TERMINATED"}, "TERMINATED"},
		{schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Exit: &schema.Exit{Code: ptr(int64(3)), Reason: "exited"}}}, "TERMINATED, exit 3"},
		{schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Exit: &schema.Exit{Signal: ptr(int64(9)), Reason: "signalled"}}}, "TERMINATED, signal 9"},
		{schema.Descriptor{State: "TERMINATED", Hosted: schema.Hosted{Exit: &schema.Exit{Reason: "limit:wall"}}}, "TERMINATED, limit:wall"},
	} {
		if got := view.StateText(&tt.d); got != tt.want {
			t.Errorf("a state is %q, want %q", got, tt.want)
		}
	}
	for _, tt := range []struct {
		command []string
		want    string
	}{
		{nil, ""},
		{[]string{"sh", "-c", "a b"}, "sh -c 'a b'"},
		{[]string{"x", "a\nb"}, `x $'a\012b'`},
		{[]string{strings.Repeat("x", 61)}, strings.Repeat("x", 57) + "..."},
	} {
		if got := view.CommandText(tt.command); got != tt.want {
			t.Errorf("%q is shown as %q, want %q", tt.command, got, tt.want)
		}
	}
}

// TestEndText: exits and ordinals as text.
func TestEndText(t *testing.T) {
	t.Parallel()
	for want, exit := range map[string]*schema.Exit{
		"has not ended":                      nil,
		"exited 9":                           {Code: ptr(int64(9)), Reason: "exited"},
		"was killed by SIGTERM":              {Signal: ptr(int64(15)), Reason: "signalled"},
		"was killed by SIGKILL (limit:wall)": {Signal: ptr(int64(9)), Reason: "limit:wall"},
		"exited 0 (ordered)":                 {Code: ptr(int64(0)), Reason: "ordered"},
		"could not be started: no such file": {Reason: "not started", Why: ptr("no such file")},
		"ended in an unknown way":            {Reason: "unknown"},
	} {
		if got := view.EndText(exit); got != want {
			t.Errorf("it %s, want %s", got, want)
		}
	}
	for n, want := range map[int64]string{1: "first", 3: "third", 4: "4th", 11: "11th", 21: "21st", 112: "112th", 122: "122nd"} {
		if got := view.Ordinal(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// tree sorts processes as ps does, and returns their PIDs and depths.
func tree(list []schema.Descriptor) (pids []int64, depths []int) {
	var processes []view.Process
	for _, d := range list {
		processes = append(processes, view.Process{Descriptor: d})
	}
	for _, p := range view.Tree(processes) {
		pids, depths = append(pids, p.PID), append(depths, p.Depth)
	}
	return pids, depths
}

// row returns the row of ps for a process.
func row(d schema.Descriptor) ([]string, error) { return (&view.Process{Descriptor: d}).Row(nil) }

// TestBudgetTable: the column of withheld amounts is shown if one is not 0.
func TestBudgetTable(t *testing.T) {
	t.Parallel()
	calls := &schema.BudgetLine{Given: "9", Spent: "1", Reserved: "2", Below: "3", Left: "3"}
	budgets := []schema.BudgetState{{PID: 1, AgentID: "a", Calls: calls}}
	want := "PID  AGENT  OF     GIVEN  SPENT  RESERVED  BELOW  LEFT\n1    a      calls  9      1      2         3      3\n"
	if got := view.BudgetTable(budgets, time.Now()).Text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	calls.Withheld = "4"
	want = "PID  AGENT  OF     GIVEN  SPENT  RESERVED  BELOW  WITHHELD  LEFT\n1    a      calls  9      1      2         3      4         3\n"
	if got := view.BudgetTable(budgets, time.Now()).Text(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
