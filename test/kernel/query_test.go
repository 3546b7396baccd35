package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/schema"
)

// questions returns data for every query, of process 1, whose child is 2.
func questions() map[string][]string {
	return map[string][]string{
		"Approval.List": {`{}`, `{"state":"waiting"}`, `{"after":"q-9"}`},
		"Audit.Log":     {`{"limit":3}`, `{"pid":1,"limit":1}`},
		"Audit.Metrics": {`{}`},
		"Audit.Show":    {`{"seq":1}`, `{"key":"k/1"}`, `{}`}, "Audit.Verify": {`{}`},
		"Capability.Check":   {`{"pid":1,"syscall":"SYS_ALLOC","resource_id":"gpu","amount":2}`, `{"pid":2,"syscall":"Memory.Set"}`},
		"Capability.Get":     {`{"pid":1}`, `{"pid":9}`},
		"Clock.Get":          {`{}`},
		"Policy.Show":        {`{}`},
		"Cluster.Ask":        {`{"kernel":"beta","type":"Process.List"}`}, // refused, like the next
		"Cluster.Queue":      {`{}`},
		"Cluster.Status":     {`{}`}, // refused: the kernel is in no cluster
		"Crypto.Derive":      {`{}`, `{"kid":"ssh-fp:none"}`},
		"Crypto.Open":        {`{"value":"pwenc:v1:e30"}`},
		"Event.Graph":        {`{"correlationId":"x"}`, `{"correlationId":"x","format":"mermaid"}`},
		"Event.Search":       {`{"query":"nowhere"}`, `{"query":"\"no such\" thing*","limit":1}`},
		"FileSystem.Resolve": {`{"uri":"https://h.example/a/../b"}`, `{"uri":"os:///x"}`},
		"Budget.Show":        {`{}`},
		"Job.List":           {`{}`, `{"status":"running"}`},
		"Job.Status":         {`{"jobId":"job-9"}`},
		"Memory.Get":         {`{"key":"k/1"}`, `{"key":"k/9"}`, `{"pid":1,"key":"proc/self/status"}`, `{"key":"proc/meminfo"}`},
		"Memory.List":        {`{}`, `{"prefix":"k","limit":1}`},
		"Process.Explain":    {`{"child_agent_id":"x","command":["sh"]}`, `{"child_agent_id":"x"}`},
		"Process.Get":        {`{"pid":2}`, `{"pid":9}`},
		"Process.List":       {`{}`, `{"state":"READY"}`},
		"Step.Diff":          {`{"agent":"nobody"}`, `{"agent":"nobody","from":1,"to":2}`},
		"Step.Get":           {`{"agent":"nobody","step":1}`},
		"Step.List":          {`{}`, `{"agent":"nobody","since":1}`},
		"Syscall.Describe":   {`{"name":"Memory.Set"}`},
		"Syscall.GetState":   {`{"pid":1}`, `{"target_pid":1,"at_tick":0}`, `{"target_pid":2}`},
		"Syscall.List":       {`{}`},
		"Message.Replay":     {`{"until_seq":7}`, `{"until_seq":7,"pid":1}`},
		"Syscall.Ping":       {`{"payload":[1.50]}`},
		"Syscall.Query":      {`{"pid":1,"resource_id":"gpu"}`, `{"resource_id":"cake"}`},
	}
}

// world gives a kernel state of every kind.
func (c *client) world() []int64 {
	c.t.Helper()
	parent := c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":4}}`)
	child := c.spawn(parent, `{"allowed_syscalls":["SYS_SEND_MSG","Ipc.*"],"expires_at_tick":3}`)
	for typ, data := range map[string]string{
		"Memory.Set":         `{"key":"k/1","value":{"a":1.50}}`,
		"Syscall.Alloc":      `{"pid":1,"resource_id":"gpu","amount":1.5}`,
		"Syscall.SendMsg":    `{"receiver_pid":2,"payload":"for 2"}`,
		"Syscall.Checkpoint": `{"pid":1}`,
	} {
		c.call(typ, data, nil)
	}
	c.call("Syscall.CommitDelta", `{"pid":1,"changes":{"mood":"calm"},"resource_changes":{"joy":0.5}}`, nil)
	return []int64{parent, child}
}

// leavings reads the mailboxes, and one number of each of the kernel's sequences.
func (c *client) leavings() (all []string) {
	c.t.Helper()
	for _, call := range [][2]string{
		{"Ipc.Receive", `{"pid":1,"max":9}`},
		{"Ipc.Receive", `{"pid":2,"max":9}`},
		{"Syscall.SendMsg", `{"receiver_pid":1,"payload":0}`},
		{"Syscall.CommitDelta", `{"pid":1}`},
		{"Syscall.Checkpoint", `{"pid":1}`},
		{"Syscall.Spawn", `{"child_agent_id":"last"}`},
	} {
		all = append(all, fmt.Sprintf("%s %s: %s", call[0], call[1], sending.ReplaceAll(c.call(call[0], call[1], nil).Data, nil)))
	}
	return all
}

// TestQueriesChangeNothing makes every query that the kernel lists, in both dialects, twice. Its answer is always the same,
// all readable state stays unchanged, and a kernel without the queries continues in the same way.
func TestQueriesChangeNothing(t *testing.T) {
	t.Parallel()
	c, unasked := start(t).dial(t), start(t).dial(t)
	pids, _ := c.world(), unasked.world()
	before := c.everything(pids)
	known := questions()
	for _, typ := range c.listed(schema.KindQuery) {
		if typ == "Process.Subscribe" {
			continue // its events are unsolicited (TestProcessesFollowed)
		}
		if len(known[typ]) == 0 {
			t.Errorf("no question is known here for %s", typ)
		}
		for _, data := range known[typ] {
			first := c.ask(typ, data)
			for _, dialect := range append(dialects(), dialects()...) {
				again := c.speak(dialect, typ, data, "")
				if got, want := sameWords(c, again), sameWords(c, first); got != want {
					t.Errorf("%s %s as an %s: got %s, first %s", typ, data, dialect, got, want)
				}
			}
		}
	}
	if diff := cmp.Diff(before, c.everything(pids)); diff != "" {
		t.Errorf("what can be read, before and after (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(unasked.leavings(), c.leavings()); diff != "" {
		t.Errorf("what comes after (-unasked +asked):\n%s", diff)
	}
}

// sameWords returns the part of an answer that must be equal in both dialects: the message of an error, and a description
// except for the name of one member. Metrics, and the length of the journal, grow with each query.
func sameWords(c *client, a answer) string {
	switch {
	case a.Kind == "error":
		return "error: " + c.failure(a).Message
	case a.Type == "Audit.Metrics", a.Type == "Audit.Verify":
		return a.Kind
	case a.Type == "Syscall.Describe":
		return a.Kind + strings.Replace(string(a.Data), `,"type":"command",`, `,"kind":"command",`, 1)
	}
	return a.Kind + string(a.Data)
}

// TestQueryMovesTheClock shows the only effect that a query can have: the operator's own tick advances the clock.
func TestQueryMovesTheClock(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	c.call("Memory.List", `{"tick":7}`, nil)
	if a := c.call("Clock.Get", `{}`, nil); string(a.Data) != `{"tick":7}` {
		t.Errorf("clock: %s", a.Data)
	}
}
