package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
)

// unread leaves the request in the socket of a stopped daemon.
func (d *doomed) unread() bool {
	d.life.Signal(d.T, syscall.SIGSTOP)
	testkit.Eventually(d.T, "the daemon is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.life.PID()))
		_, state, _ := strings.Cut(string(stat), ") ")
		return err == nil && strings.HasPrefix(state, "T")
	})
	d.ingest("two.md")
	return true
}

// noIntent sends an ingest that cannot be started. The server gets no request, although the answer has arrived.
func (d *doomed) noIntent() bool {
	d.freeze()
	d.ingest(d.web + "/v1.2.3/two.md")
	a, err := d.client.receive()
	testkit.Must(d.T, err)
	if a.code != 503 || !strings.Contains(a.text, "nothing was done") {
		d.Errorf("the caller got %+v", a)
	}
	return len(d.asked) == 0
}

// inTurn makes the process run as many effects as it may, so that its ingest waits. A later fetch of another process
// succeeds, but the server gets no request for this ingest.
func (d *doomed) inTurn() bool {
	const each = 16 // actors.maxEffectsEach
	for range each {
		testkit.Must(d.T, d.dial(d.T).send("Http.Fetch", fmt.Sprintf(`{"pid":%d,"url":%q,"timeout":30000}`, d.pid, d.web+"/hold")))
	}
	for range each {
		d.awaitAsked("/hold")
	}
	d.ingest(d.web + "/v1.2.3/two.md")
	testkit.Eventually(d.T, "the intent is on disk", func() bool { return d.intents() == 1 })
	d.dial(d.T).call("Http.Fetch", fmt.Sprintf(`{"url":%q}`, d.web+"/other"))
	return <-d.asked == "/other" && len(d.asked) == 0
}

func (d *doomed) fetching() bool {
	d.ingest(d.web + "/v1.2.3/half.md")
	d.awaitAsked("/v1.2.3/half.md")
	if got := d.dial(d.T).uri(d.pid); got != "os:///one.md" {
		d.Errorf("meanwhile the identity is %s", got)
	}
	return true
}

func (d *doomed) signature() bool {
	d.ingest(d.web + "/v1.2.3/signed.md")
	d.awaitAsked("/v1.2.3/signed.md.sig")
	return true
}

// local is killed as soon as its intent is visible.
func (d *doomed) local() bool {
	d.ingest("large.md")
	for end := time.Now().Add(testkit.Patience); d.intents() == 0; {
		if time.Now().After(end) {
			d.Fatal("there is no intent")
		}
	}
	return true
}

// noOutcome lets an ingest run through all its phases and fail to be written. Its caller gets the error after the state was
// rolled back.
func (d *doomed) noOutcome() bool {
	d.ingest(d.web + "/v1.2.3/signed.md")
	d.awaitAsked("/v1.2.3/signed.md.sig")
	d.freeze()
	close(d.gates["/v1.2.3/signed.md.sig"])
	a, err := d.client.receive()
	testkit.Must(d.T, err)
	if a.code == 0 {
		d.Errorf("the caller got %+v", a)
	}
	if got := d.dial(d.T).uri(d.pid); got != "os:///one.md" {
		d.Errorf("without an entry of the outcome, the identity is %s", got)
	}
	return strings.Contains(a.text, "its outcome counts as unknown")
}

// outcome completes an ingest whose caller has not read earlier answers: they fill the socket, so this one is not sent.
func (d *doomed) outcome() bool {
	const before, length = 40, 12_000 // more than fits a socket
	d.client.call("Memory.Set", fmt.Sprintf(`{"key":"long","value":"%s"}`, strings.Repeat("x", length)))
	for range before {
		testkit.Must(d.T, d.client.send("Memory.Get", `{"key":"long"}`))
	}
	d.ingest("two.md")
	testkit.Eventually(d.T, "the outcome is on disk", func() bool { return len(d.outcomes()) == 1 })
	d.life.End(d.T, os.Kill)
	for range before {
		if _, err := d.client.receive(); err != nil {
			return true
		}
	}
	_, err := d.client.receive()
	return err != nil
}

// freeze prevents the journal from growing: no file of the daemon can become longer than the journal is now.
func (d *doomed) freeze() {
	d.Helper()
	d.dial(d.T).call("Memory.Set", fmt.Sprintf(`{"key":"long","value":"%s"}`, strings.Repeat("x", 15_000)))
	files, err := filepath.Glob(d.Path("s/journal/*.ndjson"))
	testkit.Must(d.T, err)
	journal, err := os.Stat(files[len(files)-1])
	testkit.Must(d.T, err)
	var limit unix.Rlimit
	testkit.Must(d.T, unix.Prlimit(d.life.PID(), unix.RLIMIT_FSIZE, nil, &limit))
	limit.Cur = uint64(journal.Size())
	testkit.Must(d.T, unix.Prlimit(d.life.PID(), unix.RLIMIT_FSIZE, &limit, nil))
}
