package view

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// BudgetTable returns a table with a row for each kind of budget of a process, and one for its time. The column of
// withheld amounts is left out if they are all 0.
func BudgetTable(budgets []schema.BudgetState, now time.Time) *Table {
	t, withheld := new(Table), false
	t.Header("pid", "agent", "of", "given", "spent", "reserved", "below", "withheld", "left")
	for i := range budgets {
		b := &budgets[i]
		for _, l := range linesOf(b) {
			withheld = withheld || l.Withheld != ""
			t.Row(fmt.Sprint(b.PID), shortened(Escaped(b.AgentID), maxName), l.kind,
				string(l.Given), string(l.Spent), string(l.Reserved), string(l.Below), string(l.Withheld), string(l.Left))
		}
		if b.Deadline != nil {
			left := time.UnixMilli(*b.Deadline).Sub(now).Round(time.Second)
			t.Row(fmt.Sprint(b.PID), shortened(Escaped(b.AgentID), maxName), "time", "", "", "", "", "", max(0, left).String())
		}
	}
	if !withheld {
		t.Drop("withheld")
	}
	return t
}

type budgetLine struct {
	kind string
	*schema.BudgetLine
}

// linesOf returns the kinds of budget that a process has.
func linesOf(b *schema.BudgetState) (lines []budgetLine) {
	for _, l := range []budgetLine{{"calls", b.Calls}, {"fetches", b.Fetches}, {"tokens", b.Tokens}, {"usd", b.USD}} {
		if l.BudgetLine != nil {
			lines = append(lines, l)
		}
	}
	return lines
}

// Process is one process of Process.List.
type Process struct {
	schema.Descriptor

	Raw    schema.Value
	Depth  int                 // in the tree; 0: no parent is in the list
	Budget *schema.BudgetState // nil: the process has no own budget, or it was not requested
}

// Line returns p as JSON, with the quotas of its token and its budget.
func (p *Process) Line(token schema.Value) ([]byte, error) {
	quotas := []byte("{}")
	if out, ok := As[schema.CapabilityGetOutput](token); ok {
		var o Object
		for _, resource := range resourcesOf(&out) {
			o = o.Raw(resource, Object(nil).
				Raw("held", []byte(Units(out.Held[resource].Float()))).
				Raw("limit", []byte(Units(out.ResourceQuotas[resource]))).Close())
		}
		quotas = o.Close()
	}
	open := Object(bytes.TrimSuffix(slices.Clone(bytes.TrimSpace(p.Raw)), []byte("}")))
	open = open.Raw("quotas", quotas)
	if p.Budget != nil {
		budget, err := schema.Marshal(p.Budget)
		if err != nil {
			return nil, err
		}
		open = open.Raw("budget", budget)
	}
	return open.Close(), nil
}

// indent returns the indentation for the depth, up to a bound, since agents may make a tree of any depth.
func (p *Process) indent() string { return strings.Repeat("  ", min(p.Depth, 20)) }

// Tree sorts processes so that each is below its parent, and siblings are by PID. A process whose parent is not listed
// is at the top level. Each process is in the tree once, also if the list of another kernel has a PID twice or a cycle
// of parents; the first process of a cycle is at the top level.
func Tree(processes []Process) []Process {
	listed := make(map[int64]bool, len(processes))
	for _, p := range processes {
		listed[p.PID] = true
	}
	var next []Process // a stack, since the tree may be deep
	children := make(map[int64][]Process)
	for _, p := range slices.Backward(processes) {
		if listed[p.ParentPID] {
			children[p.ParentPID] = append(children[p.ParentPID], p)
		} else {
			next = append(next, p)
		}
	}
	tree := make([]Process, 0, len(processes))
	walk := func() {
		for len(next) > 0 {
			p := next[len(next)-1]
			next = next[:len(next)-1]
			tree = append(tree, p)
			for _, child := range children[p.PID] {
				child.Depth = p.Depth + 1
				next = append(next, child)
			}
			delete(children, p.PID)
		}
	}
	walk()
	for _, p := range processes { // in a cycle
		next = children[p.ParentPID]
		delete(children, p.ParentPID)
		walk()
	}
	return tree
}

// Terminated is the state of processes that have ended (PROTOCOL 6).
const Terminated = "TERMINATED"

// ProcessHeader returns the names of the cells of Process.Row.
func ProcessHeader() []string {
	return []string{"pid", "agent", "state", "priority", "birth tick", "quotas", "restarts", "command"}
}

// Row returns a process's cells for people.
func (p *Process) Row(token schema.Value) ([]string, error) {
	quotas := ""
	if token != nil {
		out, err := AnswerAs[schema.CapabilityGetOutput](schema.CapabilityGet.Type, token)
		if err != nil {
			return nil, err
		}
		quotas = QuotaTexts(&out)
	}
	if left := budgetLeft(p.Budget); left != "" {
		quotas = strings.TrimPrefix(quotas+", "+left, ", ")
	}
	restarts := ""
	if p.Restarts != nil {
		restarts = fmt.Sprint(*p.Restarts)
	}
	return []string{
		fmt.Sprint(p.PID), p.indent() + shortened(Escaped(p.AgentID), maxName), StateText(&p.Descriptor), p.Priority, fmt.Sprint(p.BirthTick),
		quotas, restarts, CommandText(p.Command),
	}, nil
}

// budgetLeft describes the amounts that are left of a budget.
func budgetLeft(b *schema.BudgetState) string {
	if b == nil {
		return ""
	}
	var texts []string
	for _, l := range linesOf(b) {
		texts = append(texts, fmt.Sprintf("%s %s of %s left", l.kind, l.Left, l.Given))
	}
	return strings.Join(texts, ", ")
}

// StateText returns the state with its details, and the user whom its program runs as if its spawn names one.
func StateText(d *schema.Descriptor) string {
	if d.User != nil {
		return condition(d) + ", as " + Escaped(*d.User)
	}
	return condition(d)
}

func condition(d *schema.Descriptor) string {
	switch {
	case d.Paused && d.State != Terminated:
		return d.State + ", paused"
	case d.BlockedUntilTick != nil:
		return fmt.Sprintf("%s until %d", d.State, *d.BlockedUntilTick)
	case d.State == Terminated && d.Exit != nil:
		return d.State + ", " + endWord(d.Exit)
	}
	return d.State
}

// endWord describes an exit in a word or two.
func endWord(end *schema.Exit) string {
	switch {
	case end.Reason != "exited" && end.Reason != "signalled":
		return Escaped(end.Reason)
	case end.Signal != nil:
		return fmt.Sprintf("signal %d", *end.Signal)
	}
	return fmt.Sprintf("exit %d", Deref(end.Code))
}

// maxName bounds an agent's name, in characters, so that other columns stay visible.
const maxName = 40

// CommandText formats a command for a shell, shortened if it is long.
func CommandText(command []string) string {
	return shortened(quote.Line(command...), 60)
}

// NotStarted is the reason of a program that could not be started (schema.Exit).
const NotStarted = "not started"

// Ended reports whether a process has ended, and its program too.
func Ended(d *schema.Descriptor) bool {
	return d.State == Terminated && d.OSPID == nil && (d.Exit != nil || d.Command == nil)
}

// EndText describes an exit, as the part of a sentence after its subject.
func EndText(end *schema.Exit) string {
	switch {
	case end == nil:
		return "has not ended"
	case end.Reason == NotStarted:
		return "could not be started: " + Escaped(Why(end))
	}
	text := "ended in an unknown way"
	if end.Signal != nil {
		text = "was killed by " + signalName(*end.Signal)
	} else if end.Code != nil {
		text = fmt.Sprintf("exited %d", *end.Code)
	}
	switch end.Reason {
	case "exited", "signalled", "unknown":
		return text
	}
	return text + " (" + Escaped(end.Reason) + ")"
}

// signalName returns the name of a signal, or its number if it has no name.
func signalName(n int64) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

// Why returns the details of an exit, or its reason.
func Why(end *schema.Exit) string {
	if end.Why != nil && *end.Why != "" {
		return *end.Why
	}
	return end.Reason
}
