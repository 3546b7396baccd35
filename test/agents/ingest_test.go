package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/rootfs"
)

// identity returns the identity that GetState shows for a process; "" if none.
func (c *caller) identity(pid int) string {
	c.t.Helper()
	return member(c.t, c.call("Syscall.GetState", fmt.Sprintf(`{"target_pid":%d}`, pid)), "identity")
}

// uri returns the address of what a process has adopted.
func (c *caller) uri(pid int) string {
	c.t.Helper()
	if is := c.identity(pid); is != "" {
		return strings.Trim(member(c.t, is, "uri"), `"`)
	}
	return ""
}

// agent spawns a process that may do everything that a pattern can grant, and more.
func (c *caller) agent(more string) int {
	c.t.Helper()
	out := c.call("Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"a%d","capabilities":{"allowed_syscalls":["*"]%s}}`, len(more), more))
	var pid int
	if _, err := fmt.Sscanf(out, `{"child_pid":%d`, &pid); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
	return pid
}

func ingestAs(pid int, uri, more string) string {
	return fmt.Sprintf(`{"pid":%d,"uri":%q%s}`, pid, uri, more)
}

// TestIngest: the phases run in order and are named. The identity changes, is visible, is the base of relative names, and
// survives restarts; children start without one.
func TestIngest(t *testing.T) {
	t.Parallel()
	text := "---\nname: one\ntools: [./t]\n---\ncontent\n"
	p := newTree(t, "", map[string]string{"a/one.md": text, "a/t": "x", "b.md": "plain"})
	d := p.start(t)
	c := p.dial(t)
	pid := c.agent("")
	if c.identity(pid) != "" {
		t.Error("the process starts with an identity")
	}
	out := c.call("Kernel.Ingest", ingestAs(pid, "os/a/one.md", ""))
	want := `"phases":["fetch","validate","load","adopt"],"uri":"os:///a/one.md","digest":"` + rootfs.Digest([]byte(text)) + `","proof":"local","content":"content\n"}`
	if !strings.HasPrefix(out, `{"context_id":"ctx-`) || !strings.HasSuffix(out, want) {
		t.Errorf("got %s, want %s", out, want)
	}
	is := c.identity(pid)
	if member(t, is, "name") != `"one"` || member(t, is, "context_id") != member(t, out, "context_id") {
		t.Errorf("the identity is %s", is)
	}
	if got := c.call("Kernel.Ingest", ingestAs(pid, "../b.md", `,"integrity":"`+rootfs.Digest([]byte("plain"))+`"`)); member(t, got, "uri") != `"os:///b.md"` ||
		member(t, got, "proof") != `"integrity"` {
		t.Errorf("a name relative to the identity: %s", got)
	}
	if child := c.call("Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"b","pid":%d}`, pid)); c.identity(pid+1) != "" {
		t.Errorf("%s has an identity", child)
	}
	c.call("Syscall.Call", fmt.Sprintf(`{"syscall":"ingest","args":["os/a/one.md"],"pid":%d}`, pid))
	hydrated := c.call("FileSystem.Hydrate", fmt.Sprintf(`{"pid":%d}`, pid))
	d.End(t, os.Kill)
	p.put(t, "a/one.md", "other") // what was adopted does not change
	p.start(t)
	c = p.dial(t)
	if c.identity(pid) != is {
		t.Errorf("after a restart the identity is %s", c.identity(pid))
	}
	if again := c.call("FileSystem.Hydrate", fmt.Sprintf(`{"pid":%d}`, pid)); again != hydrated || !strings.Contains(again, `"uri":"os:///a/t"`) {
		t.Errorf("after a restart: %s, before %s", again, hydrated)
	}
	if got := c.call("Audit.Verify", `{}`); member(t, got, "ok") != "true" {
		t.Errorf("got %s", got)
	}
}

// TestIngestFailsWhole: whichever phase fails, the process keeps its identity with its content.
func TestIngestFailsWhole(t *testing.T) {
	t.Parallel()
	p := newTree(t, "", map[string]string{
		"one.md": "---\ntools: [t]\n---\none", "t": "x", "broken.md": "---\ntools: 1\n---\n", "signed.md": "s", "signed.md.sig": "no signature",
		"binary.md": "a\xffb", "big.md": strings.Repeat("x", 1<<20+1), "lost.md": "---\ntools: [nowhere]\n---\n",
	})
	testkit.Must(t, os.Symlink("/etc/passwd", p.Path("root/out.md")))
	p.start(t)
	c := p.dial(t)
	pid := c.agent("")
	c.call("Kernel.Ingest", ingestAs(pid, "one.md", ""))
	is, has := c.identity(pid), c.call("FileSystem.Hydrate", fmt.Sprintf(`{"pid":%d}`, pid))
	for _, x := range []struct {
		code            int
		says, uri, more string
	}{
		{404, "fetch: read os:///nothing.md", "nothing.md", ""},
		{403, "fetch: ", "out.md", ""},
		{422, "fetch: ", ".", ""},
		{507, "fetch: ", "big.md", ""},
		{422, "above root", "../one.md", ""},
		{422, "validate: ", "one.md", `,"integrity":"sha256-` + strings.Repeat("A", 43) + `="`},
		{422, "validate: ", "one.md", `,"integrity":"md5-x"`},
		{422, "validate: ", "broken.md", `,"integrity":"sha256-` + strings.Repeat("A", 43) + `="`}, // before it is loaded
		{404, "fetch: ", "nothing.md", `,"integrity":"sha256-` + strings.Repeat("A", 43) + `="`},   // before it is validated
		{403, "validate: ", "signed.md", ""},
		{422, "load: ", "broken.md", ""},
		{422, "load: ", "binary.md", ""},
	} {
		c.refused(x.code, x.says, "Kernel.Ingest", ingestAs(pid, x.uri, x.more))
		if got := c.identity(pid); got != is {
			t.Fatalf("%s: the identity is %s", x.uri, got)
		}
	}
	c.refused(404, "nowhere", "FileSystem.Hydrate", `{"uri":"lost.md"}`)
	c.refused(422, "uri", "FileSystem.Hydrate", `{}`)
	if got := c.call("FileSystem.Hydrate", fmt.Sprintf(`{"pid":%d}`, pid)); got != has {
		t.Errorf("the resources of the identity are %s", got)
	}
	poor := c.call("Syscall.Spawn", `{"child_agent_id":"b","capabilities":{"allowed_syscalls":["Memory.*"]}}`)
	var other int
	_, err := fmt.Sscanf(poor, `{"child_pid":%d`, &other)
	testkit.Must(t, err)
	c.refused(403, "may not call Kernel.Ingest", "Kernel.Ingest", ingestAs(other, "one.md", ""))
	c.refused(403, "may not call Kernel.Ingest", "Syscall.Call", fmt.Sprintf(`{"syscall":"ingest","args":["one.md"],"pid":%d}`, other))
	c.refused(403, "may not call Syscall.Call", "Syscall.Call", fmt.Sprintf(`{"syscall":"os/t","pid":%d}`, other))
}

// TestIngestKilledAtAnyMoment: a daemon that is killed at any moment of an ingest has completed it or not, and an answered
// one is complete. It covers moments between the phases at which TestIngestKilled stops, such as half an entry.
func TestIngestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	rounds := testkit.Rounds(8, 16, 40)
	p := newTree(t, "[journal]\nsnapshot_every = 20\n", map[string]string{
		"0.md": "---\ntools: [t0]\n---\n" + strings.Repeat("zero ", 50_000), "1.md": "---\ntools: [t1]\n---\none", "t0": "x", "t1": "y",
	})
	d := p.start(t)
	pid := p.dial(t).agent("")
	before, done, undone := "", 0, 0
	for round := range rounds {
		c := p.dial(t)
		wanted := fmt.Sprintf("os:///%d.md", round%2)
		testkit.Must(t, c.send("Kernel.Ingest", ingestAs(pid, wanted, "")))
		answered := make(chan bool, 1)
		go func() {
			a, err := c.receive()
			answered <- err == nil && a.code == 0
		}()
		<-time.After(time.Duration(round) * 150 * time.Microsecond) // a different moment in each round
		d.End(t, os.Kill)
		was := <-answered
		d = p.start(t)
		c = p.dial(t)
		now := c.uri(pid)
		switch {
		case now != before && now != wanted:
			t.Fatalf("round %d: the identity was %q, the ingest was of %q, and now it is %q", round, before, wanted, now)
		case was && now != wanted:
			t.Fatalf("round %d: the ingest of %q was answered, and the identity is %q", round, wanted, now)
		case now == wanted:
			done++
		default:
			undone++
		}
		if now != "" {
			tools := c.call("FileSystem.Hydrate", fmt.Sprintf(`{"pid":%d}`, pid))
			if want := fmt.Sprintf(`"uri":"os:///t%s"`, now[len("os:///"):len("os:///")+1]); !strings.Contains(tools, want) {
				t.Fatalf("round %d: the identity is %s, with the content of another one: %s", round, now, tools)
			}
		}
		before = now
	}
	t.Logf("%d ingests completed, %d not", done, undone)
}

// TestIngestLong: content that does not fit a line is passed by reference, completely.
func TestIngestLong(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("a line of text\n", 20_000)
	p := newTree(t, "", map[string]string{"long.md": "---\nname: l\n---\n" + content})
	p.start(t)
	got := p.dial(t).call("Kernel.Ingest", `{"uri":"long.md"}`)
	var out struct {
		Content    *string
		ContentRef struct{ Path string }
	}
	testkit.Must(t, json.Unmarshal([]byte(got), &out))
	text, err := os.ReadFile(out.ContentRef.Path)
	if err != nil || out.Content != nil || !strings.Contains(string(text), "a line of text") || len(text) < len(content) {
		t.Errorf("%d bytes, %v of %.200s", len(text), err, got)
	}
}
