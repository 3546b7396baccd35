package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// registers is the model of one key: a register.
var registers = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(op); in.set {
			return true, in.value
		}
		return output.(string) == state.(string), state
	},
}

// linearizable checks the clients' history, each key separately.
func (h *history) linearizable() {
	keys := make(map[string][]porcupine.Operation)
	for _, call := range h.calls {
		key := call.Input.(op).key
		keys[key] = append(keys[key], call)
	}
	for key, calls := range keys {
		if result := porcupine.CheckOperationsTimeout(registers, calls, time.Minute); result != porcupine.Ok {
			h.found("%d calls of the key %s are not linearizable: %s", len(calls), key, result)
		}
	}
}

// applied is the set that an entry of a journal applies, or whose outcome it repeats.
type applied struct{ key, value string }

func appliedBy(record *journal.Record) (applied, bool) {
	if !bytes.Contains(record.Request, []byte(`"Memory.Set"`)) || !bytes.HasPrefix(record.Outcome, []byte(`{"kind":"reply"`)) {
		return applied{}, false
	}
	var request struct {
		Data struct{ Key, Value string }
	}
	err := json.Unmarshal(record.Request, &request)
	return applied{strings.TrimPrefix(request.Data.Key, "/"), request.Data.Value}, err == nil
}

// read calls each with every entry of a journal.
func read(t *testing.T, dir string, each func(*journal.Record)) {
	t.Helper()
	from := uint64(1)
	if firsts := testkit.Value(filepath.Glob(filepath.Join(dir, "*.ndjson")))(t); len(firsts) > 0 {
		testkit.Value(fmt.Sscanf(filepath.Base(firsts[0]), "%d", &from))(t)
	}
	r := journal.NewReader(nil, dir, journal.ReaderOptions{From: from})
	defer r.Close()
	for {
		record, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return
		}
		testkit.Must(t, err)
		each(record)
	}
}

// check compares the clients' history with the final state: the hosts have ended, and the bus runs. It returns what is
// wrong.
func (r *rig) check() []string {
	t, h := r.t, r.history
	t.Helper()
	leader := r.leader()
	sets, hashes := make(map[uint64]applied), []journal.Hash{{}}
	values := make(map[string]uint64)
	read(t, leader.journal(), func(record *journal.Record) {
		hashes = append(hashes, record.Hash)
		if s, ok := appliedBy(record); ok {
			sets[record.Seq] = s
			if bytes.Contains(record.Outcome, []byte(`"repeats":`)) {
				return
			}
			if before, twice := values[s.value]; twice {
				h.found("entries %d and %d both set %s: a command was done twice", before, record.Seq, s.value)
			}
			values[s.value] = record.Seq
		}
	})
	answers := make(map[uint64]set)
	for _, s := range h.sets {
		if sets[s.seq] != (applied{s.key, s.value}) {
			h.found("the set of %s to %s, acknowledged by host %d as entry %d, is not there: that entry has %v", s.key, s.value, s.host, s.seq, sets[s.seq])
		}
		if other, ok := answers[s.seq]; ok {
			h.found("entry %d has answered the sets of %s and %s", s.seq, other.value, s.value)
		}
		answers[s.seq] = s
	}
	for _, host := range r.hosts {
		r.checkAside(host, answers)
	}
	r.checkStream(hashes)
	h.linearizable()
	return h.findings
}

// checkAside searches for acknowledged sets in what a host has set aside.
func (r *rig) checkAside(host *host, answers map[uint64]set) {
	r.t.Helper()
	entries := 0
	dirs := testkit.Value(filepath.Glob(filepath.Join(host.journal(), "diverged-*")))(r.t)
	for _, dir := range dirs {
		first := uint64(0)
		testkit.Value(fmt.Sscanf(filepath.Base(dir), "diverged-%d-", &first))(r.t)
		read(r.t, dir, func(record *journal.Record) {
			if record.Seq < first {
				return
			}
			entries++
			s, ok := appliedBy(record)
			if acked := answers[record.Seq]; ok && acked.host == host.index && (applied{acked.key, acked.value}) == s {
				r.history.found("host %d has set entry %d aside, which it had acknowledged", host.index, record.Seq)
			}
		})
	}
	r.t.Logf("host %d has set %d entries aside, in %d directories", host.index, entries, len(dirs))
}

// compared is a Sink that compares the stream with the journal's entries.
type compared struct {
	hashes []journal.Hash
	last   uint64
}

func (c *compared) Line(record *journal.Record) error {
	if record.Seq >= uint64(len(c.hashes)) || record.Hash != c.hashes[record.Seq] {
		return fmt.Errorf("entry %d of the stream is not the journal's", record.Seq)
	}
	c.last = record.Seq
	return nil
}

func (c *compared) Checkpoint(journal.Checkpoint) error { return nil }

// checkStream compares the stream with the journal, in this test and with the command line of the other host.
func (r *rig) checkStream(hashes []journal.Hash) {
	r.t.Helper()
	conn, js, err := cluster.Dial(testkit.Context(r.t), cluster.Options{
		Name: "alpha", Servers: r.urls(), Key: r.leader().key, Log: slog.New(slog.DiscardHandler),
	})
	testkit.Must(r.t, err)
	defer conn.Close()
	var keys []access.PublicKey
	for _, h := range r.hosts {
		keys = append(keys, h.key.Key())
	}
	var sink *compared
	var report *cluster.Report
	for end := time.Now().Add(testkit.Patience); ; { // nodes that elect a leader do not answer meanwhile
		sink = &compared{hashes: hashes}
		report, err = cluster.Verify(r.t.Context(), js, "alpha", keys, sink)
		if !errors.Is(err, context.DeadlineExceeded) || time.Now().After(end) {
			break
		}
	}
	switch {
	case err != nil:
		r.history.found("the stream cannot be read: %v", err)
		return
	case report.Finding != nil:
		r.history.found("the stream is not in order: %v", report.Finding)
	case sink.last+1 < uint64(len(hashes)):
		r.history.found("the stream lacks the last %d entries of the journal", uint64(len(hashes))-1-sink.last)
	}
	if code, out := r.verify(); code != 0 {
		r.history.found("pwos audit verify --kernel alpha: exit %d: %s", code, out)
	}
	r.t.Logf("%d entries, of which %d are acknowledged sets; %d calls; %v", report.Entries, len(r.history.sets), len(r.history.calls), time.Since(r.history.begun).Round(time.Millisecond))
}

// verify runs "pwos audit verify --kernel alpha" as the host that does not lead, again while the nodes of the bus elect a leader.
func (r *rig) verify() (code int, out string) {
	r.t.Helper()
	h := r.other(r.leader())
	if h == nil {
		h = r.leader()
	}
	for end := time.Now().Add(testkit.Patience); ; time.Sleep(100 * time.Millisecond) {
		if code, out = r.pwos(h, "audit", "verify", "--kernel", "alpha"); code == 0 || code == 10 || time.Now().After(end) {
			return code, out
		}
	}
}

// pwos runs a verb in the environment of a host, and returns its exit status and its output.
func (r *rig) pwos(h *host, args ...string) (code int, out string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), testkit.Program(r.t, "pwos"), args...)
	cmd.Env = append(os.Environ(), "PWOS_RUNTIME_DIR="+filepath.Join(h.dir, "r"), "PWOS_STATE_DIR="+h.stateDir(), "PWOS_CONFIG="+filepath.Join(h.dir, "config.toml"))
	text, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(text)
	}
	testkit.Must(r.t, err)
	return 0, string(text)
}

// forge appends a message to the stream as the operator of the bus can: as the kernel's user, with an invalid signature.
// The other host must not accept it, and verification must find it.
func (r *rig) forge() {
	r.t.Helper()
	leader := r.leader()
	conn, js, err := cluster.Dial(testkit.Context(r.t), cluster.Options{
		Name: "alpha", Servers: r.urls(), Key: leader.key, Log: slog.New(slog.DiscardHandler),
	})
	testkit.Must(r.t, err)
	defer conn.Close()
	// The nodes answer nothing while they elect a leader.
	var m *jetstream.RawStreamMsg
	testkit.Eventually(r.t, "the last message of the stream is read", func() bool {
		stream, err := js.Stream(r.t.Context(), cluster.Stream("alpha"))
		if err == nil {
			m, err = stream.GetMsg(r.t.Context(), stream.CachedInfo().State.LastSeq)
		}
		return err == nil
	})
	forged := &nats.Msg{Subject: m.Subject, Header: m.Header, Data: bytes.ReplaceAll(m.Data, []byte(`"pid":0`), []byte(`"pid":1`))}
	forged.Header.Del(jetstream.ExpectedLastSeqHeader)
	testkit.Eventually(r.t, "the forged message is accepted", func() bool {
		_, err := js.PublishMsg(r.t.Context(), forged)
		return err == nil
	})
	if code, out := r.verify(); code != 10 {
		r.t.Errorf("a forged stream: pwos audit verify --kernel alpha: exit %d, want 10: %s", code, out)
	}
}

// panicked returns the lines of daemons that have ended with a panic.
func (r *rig) panicked() (lines []string) {
	for _, h := range r.hosts {
		for line := range strings.Lines(h.process.Output()) {
			if slices.ContainsFunc([]string{"panic:", "fatal error:", "DATA RACE"}, func(sign string) bool { return strings.Contains(line, sign) }) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}
