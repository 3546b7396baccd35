package agents_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestIngestKilled kills the daemon in each phase of an ingest. Something outside of the daemon stops it in each phase, and
// the signs of the phase are checked before and after the kill: entries of the journal, requests to the server, answers to
// the client. After the restart the ingest happened completely or not at all: in the identity, the content, and the
// journal, which is valid; and another ingest succeeds.
//
//   - unread: the daemon is stopped, and the request is in its socket, unread.
//   - no intent: the intent is decided and cannot be written. The caller gets an error, and the server no request.
//   - intent: the intent is on disk, and the effect waits for its turn, since the process has the maximum number of
//     effects in flight. The server has no request.
//   - fetch: half of the content has arrived.
//   - signature: the content has arrived, its signature file has not.
//   - local: a file below root is read, validated and loaded. The test cannot stop this phase: it repeats it until the
//     kill is between the two entries.
//   - no outcome: the content is loaded, adopted and stored, and the entry of the outcome cannot be written. The kernel
//     rolls all of it back before it is killed.
//   - outcome: the outcome is on disk, and the answer is not sent, since the caller does not read earlier answers.
//
// Before the entry of the outcome nothing has happened; afterwards everything has, whether or not the client got the
// answer.
func TestIngestKilled(t *testing.T) {
	t.Parallel()
	for _, phase := range []struct {
		name    string
		reach   func(*doomed) bool // false: something else happened first
		intent  bool               // the journal has one
		happens bool
	}{
		{name: "unread", reach: (*doomed).unread},
		{name: "no intent", reach: (*doomed).noIntent},
		{name: "intent", reach: (*doomed).inTurn, intent: true},
		{name: "fetch", reach: (*doomed).fetching, intent: true},
		{name: "signature", reach: (*doomed).signature, intent: true},
		{name: "local", reach: (*doomed).local, intent: true},
		{name: "no outcome", reach: (*doomed).noOutcome, intent: true},
		{name: "outcome", reach: (*doomed).outcome, intent: true, happens: true},
	} {
		t.Run(phase.name, func(t *testing.T) {
			const tries = 50 // on a busy machine a time-out of the daemon may come first
			for range tries {
				d := doom(t)
				reached := phase.reach(d)
				d.life.End(t, os.Kill)
				if reached = reached && d.between(phase.intent, phase.happens); reached {
					d.survived(phase.intent, phase.happens)
					return
				}
				if t.Failed() {
					return
				}
			}
			t.Errorf("the phase was not reached in %d tries", tries)
		})
	}
}

// doomed is a daemon that will be killed while a process ingests a resource. The process's identity before is one.md.
type doomed struct {
	*testing.T
	tree
	life   *testkit.Process
	client *caller // sends the ingest
	pid    int
	web    string
	asked  chan string              // paths of requests to the server
	gates  map[string]chan struct{} // by path: the server waits for it in the middle of its answer
	uri    string                   // what is ingested
}

func doom(t *testing.T) *doomed {
	t.Helper()
	d := &doomed{T: t, asked: make(chan string, 64), gates: map[string]chan struct{}{
		"/hold": make(chan struct{}), "/v1.2.3/half.md": make(chan struct{}), "/v1.2.3/signed.md.sig": make(chan struct{}),
	}}
	over := make(chan struct{})
	web, settings := server(t, func(w http.ResponseWriter, r *http.Request) { d.serve(w, r, over) })
	t.Cleanup(func() { close(over) })
	d.web = web
	d.tree = newTree(t, settings, map[string]string{
		"one.md": "---\ntools: [t1]\n---\none", "two.md": two, "t1": "x", "t2": "y",
		"large.md": "---\ntools: [t2]\n---\n" + strings.Repeat("a line of text\n", 60_000),
	})
	d.life = d.start(t)
	d.client = d.dial(t)
	d.pid = d.client.agent(`,"http":{"hosts":["127.0.0.1:*"]}`)
	d.client.call("Kernel.Ingest", ingestAs(d.pid, "one.md", ""))
	return d
}

// two is a resource that a process may become.
const two = "---\ntools: [os/t2]\n---\ntwo"

// serve is the server. At a gate it has sent half of its answer.
func (d *doomed) serve(w http.ResponseWriter, r *http.Request, over chan struct{}) {
	d.asked <- r.URL.Path
	if gate := d.gates[r.URL.Path]; gate != nil {
		if r.URL.Path == "/v1.2.3/half.md" {
			_, _ = w.Write([]byte(two[:len(two)/2]))
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		case <-over:
			return
		}
	}
	if strings.HasSuffix(r.URL.Path, ".sig") {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(two))
}

// ingest sends an ingest without waiting.
func (d *doomed) ingest(uri string) {
	d.Helper()
	d.uri = uri
	testkit.Must(d.T, d.client.send("Kernel.Ingest", ingestAs(d.pid, uri, "")))
}

// awaitAsked waits until the server gets a request for the path.
func (d *doomed) awaitAsked(path string) {
	d.Helper()
	for {
		select {
		case got := <-d.asked:
			if got == path {
				return
			}
		case <-time.After(testkit.Patience):
			d.Fatalf("the server gets no request for %s", path)
		}
	}
}

// whole returns the complete entries that contain a text.
func (d *doomed) whole(text string) (lines []string) {
	d.Helper()
	for _, line := range d.entries(d.T, text) {
		if strings.HasSuffix(line, "\n") {
			lines = append(lines, line)
		}
	}
	return lines
}

func (d *doomed) intents() int {
	n := 0
	for _, line := range d.whole(`"type":"Kernel.Ingest"`) {
		if strings.Contains(line, fmt.Sprintf(`"uri":%q`, d.uri)) {
			n++
		}
	}
	return n
}

// outcomes returns the ends of ingests after that of one.md.
func (d *doomed) outcomes() []string { return d.whole(`"type":"Process.Adopted"`)[1:] }

// between reports whether the journal after the kill is that of the phase.
func (d *doomed) between(intent, outcome bool) bool {
	return (d.intents() == 1) == intent && (len(d.outcomes()) == 1) == outcome
}

// survived checks the state after the kill.
func (d *doomed) survived(intent, happened bool) {
	d.Helper()
	d.start(d.T)
	c := d.dial(d.T)
	want, tool := "os:///one.md", "os:///t1"
	if happened {
		want, tool = "os:///two.md", "os:///t2"
	}
	if got := c.uri(d.pid); got != want {
		d.Errorf("the identity is %s, want %s", got, want)
	}
	if got := c.call("FileSystem.Hydrate", fmt.Sprintf(`{"pid":%d}`, d.pid)); !strings.Contains(got, fmt.Sprintf(`"uri":%q`, tool)) {
		d.Errorf("the content is of another resource: %s", got)
	}
	outcomes := d.outcomes()
	if (len(outcomes) == 1) != intent || len(outcomes) > 1 {
		d.Fatalf("the outcomes of the ingest are %q", outcomes)
	}
	if intent {
		if unknown := strings.Contains(outcomes[0], "unknown"); unknown == happened {
			d.Errorf("the outcome of the ingest is %s", outcomes[0])
		}
	}
	for _, uri := range []string{"large.md", "two.md"} {
		c.call("Kernel.Ingest", ingestAs(d.pid, uri, ""))
		if got := c.uri(d.pid); got != "os:///"+uri {
			d.Errorf("after another ingest the identity is %s, want %s", got, uri)
		}
	}
	if got := c.call("Audit.Verify", `{}`); member(d.T, got, "ok") != "true" {
		d.Errorf("the journal: %s", got)
	}
}
