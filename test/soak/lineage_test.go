package soak_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// lineage makes a chain of calls of agents, each of which causes the next: a generation is an agent that is spawned by the
// previous one, sends it mail, gets a grant for that, and uses it.
type lineage struct {
	last   string // the id of the latest call
	parent int64  // the agent of the latest generation
	links  int    // calls so far, each caused by the one before
	born   int    // generations
}

// call makes one call, caused by another one if cause is not "".
func (l *lineage) call(t *testing.T, c *conn, typ, data, cause string, out any) {
	t.Helper()
	l.links++
	id := fmt.Sprint("lineage-", l.links)
	if cause != "" {
		cause = fmt.Sprintf(`,"causation":%q`, cause)
	}
	c.raw(due{id: id}, fmt.Sprintf(`{"kind":"command","type":%q,"data":%s,"metadata":{"id":%q,"timestamp":1%s}}`, typ, data, id, cause))
	answer, err := c.flush()
	testkit.Must(t, err)
	if out != nil {
		testkit.Must(t, json.Unmarshal(answer, out))
	}
	l.last = id
}

// generation adds one agent and its six calls.
func (l *lineage) generation(t *testing.T, p *place) {
	t.Helper()
	c, err := p.dial()
	testkit.Must(t, err)
	defer c.end(nil)
	l.born++
	var born schema.SpawnOutput
	as := ""
	if l.parent != 0 {
		as = fmt.Sprintf(`"pid":%d,`, l.parent)
	}
	l.call(t, c, "Syscall.Spawn", fmt.Sprintf(`{%s"child_agent_id":"g%d","capabilities":{"allowed_syscalls":["*"]}}`, as, l.born), l.last, &born)
	child, parent := born.ChildPID, l.parent
	l.parent = child
	l.call(t, c, "Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"born","value":1}`, child), "", nil) // caused by its birth
	if parent == 0 {
		return
	}
	l.call(t, c, "Syscall.SendMsg", fmt.Sprintf(`{"pid":%d,"receiver_pid":%d,"payload":"may I"}`, child, parent), l.last, nil)
	l.call(t, c, "Ipc.Receive", fmt.Sprintf(`{"pid":%d}`, parent), "", nil) // caused by the mail
	l.call(t, c, "Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.*"],"mode":"add"}`, child), l.last, nil)
	l.call(t, c, "Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"lineage","value":%d}`, child, l.born), l.last, nil)
}

// walk queries the causes of the latest call up to the first, as "pwos why" does.
func (l *lineage) walk(t *testing.T, c *conn) {
	t.Helper()
	ask := `{"key":"lineage","effects":false}`
	for link := 1; ; link++ {
		var shown schema.AuditShowOutput
		testkit.Must(t, c.call("Audit.Show", ask, &shown))
		cause := shown.Call(schema.RelationCause)
		if cause == nil && shown.CauseID == "" {
			cause = shown.Call(schema.RelationSpawned)
		}
		if cause == nil {
			if link != l.links {
				t.Fatalf("the chain ends after %d links at %s of pid %d, want %d", link, shown.Entry.Type, shown.Entry.PID, l.links)
			}
			return
		}
		ask = fmt.Sprintf(`{"seq":%d,"effects":false}`, cause.Entry.Seq)
	}
}

// maxLines is how many lines of a story are read.
const maxLines = 20_000

// tellStory runs "pwos story" from an entry on, and returns the time until its first line and until the last one that is read.
func tellStory(t *testing.T, p *place, since int) {
	t.Helper()
	cmd := exec.Command(testkit.Program(t, "pwos"), "story", "--since", fmt.Sprint(since))
	cmd.Env = append(os.Environ(), "HOME="+p.Dir, "PWOS_RUNTIME_DIR="+p.RuntimeDir(), "PWOS_STATE_DIR="+p.StateDir())
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	begun := time.Now()
	testkit.Must(t, cmd.Start())
	lines, n, first := bufio.NewScanner(out), 0, time.Duration(0)
	lines.Buffer(nil, schema.MaxLine)
	for n < maxLines && lines.Scan() {
		if n++; n == 1 {
			first = time.Since(begun)
			if strings.TrimSpace(lines.Text()) == "" {
				t.Error("the first line of the story is empty")
			}
		}
	}
	testkit.Must(t, lines.Err())
	if n == maxLines {
		testkit.Must(t, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait() // it was interrupted
	} else {
		testkit.Must(t, cmd.Wait())
	}
	t.Logf("%-40s %10v, %d lines %v", fmt.Sprintf("pwos story --since %d: first line", since), first.Round(100*time.Microsecond), n, time.Since(begun).Round(time.Millisecond))
}
