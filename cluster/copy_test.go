package cluster_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/journal"
)

// scribe writes a journal.
type scribe struct {
	t   *testing.T
	dir string
	log *journal.Log
	key *access.HostKey
}

func newScribe(t *testing.T, key *access.HostKey) *scribe {
	t.Helper()
	s := &scribe{t: t, dir: testkit.Dir(t), key: key}
	s.open()
	t.Cleanup(func() { testkit.Must(t, s.log.Close()) })
	return s
}

func (s *scribe) open() {
	s.t.Helper()
	log, _, err := journal.Open(journal.Options{Dir: s.dir, Signer: s.key})
	testkit.Must(s.t, err)
	s.log = log
}

// write appends n entries, each with some bytes of text, as one batch.
func (s *scribe) write(n, size int) {
	s.t.Helper()
	s.append(slices.Repeat([]string{strings.Repeat("x", size)}, n)...)
}

// append appends an entry with each text, as one batch.
func (s *scribe) append(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		s.log.Append(&journal.Entry{Time: 1, Request: []byte(`"` + text + `"`), Outcome: []byte(`"ok"`)})
	}
	testkit.Must(s.t, s.log.Flush())
	_, err := s.log.Sync()
	testkit.Must(s.t, err)
}

// checkpoint signs an entry.
func (s *scribe) checkpoint(key *access.HostKey, head journal.Head) journal.Checkpoint {
	s.t.Helper()
	return testkit.Value(testkit.Value(journal.NewHeadSigner(key))(s.t).Sign(head, time.UnixMilli(1)))(s.t)
}

// noise returns a text that cannot be compressed.
func noise(size int) string {
	random := make([]byte, base64.StdEncoding.DecodedLen(size))
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random) // never fails
	return base64.StdEncoding.EncodeToString(random)
}

func (s *scribe) source() cluster.Source {
	return cluster.Source{Dir: s.dir, Synced: s.log.Synced, Last: s.log.Synced, Await: s.log.AwaitSynced}
}

// member is a kernel on a bus.
type member struct {
	conn *nats.Conn
	js   jetstream.JetStream
	key  *access.HostKey
}

func join(t *testing.T, b *testbus.Bus, name string, key *access.HostKey) *member {
	t.Helper()
	conn, js, err := cluster.Dial(testkit.Context(t), cluster.Options{Name: name, Servers: b.URL(), Key: key, Log: slog.New(slog.DiscardHandler)})
	testkit.Must(t, err)
	t.Cleanup(conn.Close)
	return &member{conn, js, key}
}

// handleRequests handles the requests to a kernel until the test ends. The connection must be closed later than that.
func handleRequests(t *testing.T, conn *nats.Conn, kernel string, handle func(*nats.Msg)) {
	t.Helper()
	var mu sync.Mutex // held while a request is handled, so that none is when the test has ended
	over := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	})
	testkit.Value(conn.Subscribe(cluster.RequestSubject(kernel), func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			handle(m)
		}
	}))(t)
	testkit.Must(t, conn.Flush())
}

// makes has the bus make the stream or the lease of a kernel.
func (m *member) makes(t *testing.T, what, name string) {
	t.Helper()
	reply := testkit.Value(m.conn.RequestWithContext(testkit.Context(t), cluster.MakeSubject(what, name), []byte("1")))(t)
	if len(reply.Data) > 0 {
		t.Fatalf("%s", reply.Data)
	}
}

// copy runs a copy until stop is called, or the test ends.
func (m *member) copy(t *testing.T, s *scribe, name string) (c *cluster.Copy, stop func()) {
	t.Helper()
	c = testkit.Value(cluster.NewCopy(name, m.key, s.source(), 1, m.conn, quiet))(t)
	return c, running(t, c)
}

var quiet = slog.New(slog.DiscardHandler)

// running starts c, which runs until stop is called or the test ends.
func running(t *testing.T, c *cluster.Copy) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func copied(t *testing.T, c *cluster.Copy, s *scribe) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("entry %d is copied", s.log.Synced()), func() bool {
		p := c.Progress()
		if p.Alarm != "" {
			t.Fatal(p.Alarm)
		}
		return p.Copied == s.log.Synced()
	})
}

func verify(t *testing.T, m *member, name string, keys ...access.PublicKey) *cluster.Report {
	t.Helper()
	if keys == nil {
		keys = []access.PublicKey{m.key.Key()}
	}
	return testkit.Value(cluster.Verify(testkit.Context(t), m.js, name, keys, nil))(t)
}

// whole fails the test if the stream is not a complete copy of the journal.
func whole(t *testing.T, m *member, s *scribe, name string) {
	t.Helper()
	r := verify(t, m, name)
	if r.Finding != nil {
		t.Fatal(r.Finding)
	}
	if want := s.log.Head(); r.Head != want || r.Entries != want.Seq || r.Vouched != want.Seq {
		t.Fatalf("the stream has %d entries up to %v, vouched for up to %d; want %v", r.Entries, r.Head, r.Vouched, want)
	}
}

// The stream gets the whole chain of the journal: entries written before the copy started, lines longer than a message with
// others before them, entries written while the bus was stopped, and later ones. Only short messages, and those that would
// not get shorter, are not compressed.
func TestCopy(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	b := testbus.Start(t, line)
	s := newScribe(t, key)
	s.write(3, 10)
	m := join(t, b, "alpha", key)
	c, stop := m.copy(t, s, "alpha")
	copied(t, c, s)
	s.write(2000, 1000)
	copied(t, c, s)
	if got := m.encodings(t, "alpha"); !slices.Contains(got, "s2") || got[0] != "" {
		t.Errorf("the messages have the encodings %q, want none for the first, and s2 for some", got)
	}
	before := len(m.encodings(t, "alpha"))
	s.append(strings.Repeat("x", 4<<10), noise(journal.MaxLine-1<<10))
	s.write(1, 10)
	copied(t, c, s)
	whole(t, m, s, "alpha")
	if got := m.encodings(t, "alpha")[before:]; slices.Contains(got, "s2") || len(got) < journal.MaxLine>>20 {
		t.Errorf("what cannot be compressed has the encodings %q, want none, in parts", got)
	}

	b.Stop()
	s.write(5, 10)
	b.Restart()
	copied(t, c, s)
	stop()
	s.write(5, 10)
	c, _ = m.copy(t, s, "alpha")
	copied(t, c, s)
	whole(t, m, s, "alpha")
}

// encodings returns the encoding of each message of a stream.
func (m *member) encodings(t *testing.T, kernel string) (list []string) {
	t.Helper()
	stream := testkit.Value(m.js.Stream(testkit.Context(t), cluster.Stream(kernel)))(t)
	for seq := range stream.CachedInfo().State.LastSeq {
		one := testkit.Value(stream.GetMsg(testkit.Context(t), seq+1))(t)
		list = append(list, one.Header.Get("Pwos-Encoding"))
	}
	return list
}

// A bus that restarts with an older state, or with none, gets the missing entries again.
func TestRefill(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	b := testbus.Start(t, line)
	s := newScribe(t, key)
	s.write(10, 100)
	m := join(t, b, "alpha", key)
	c, _ := m.copy(t, s, "alpha")
	copied(t, c, s)
	b.Stop()
	older := testkit.Dir(t)
	testkit.Must(t, os.CopyFS(older+"/copy", os.DirFS(b.Dir)))
	b.Restart()
	s.write(10, 100)
	copied(t, c, s)
	for _, what := range []string{older + "/copy", testkit.Dir(t)} {
		b.Stop()
		b.Dir = what
		b.Restart()
		filled(t, m, s.log.Head().Seq)
		whole(t, m, s, "alpha")
	}
}

// filled waits until the stream ends with an entry.
func filled(t *testing.T, m *member, last uint64) {
	t.Helper()
	testkit.Eventually(t, "the stream is filled again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a bus that ends answers no request
		defer cancel()
		r, err := cluster.Verify(ctx, m.js, "alpha", []access.PublicKey{m.key.Key()}, nil)
		return err == nil && r.Head.Seq == last
	})
}

// redact removes the text of an entry from the journal, and returns once the entry that vouches for it is on disk.
func (s *scribe) redact(seq uint64) {
	s.t.Helper()
	testkit.Value(s.log.EndSegment())(s.t)
	w := testkit.Value(journal.PrepareRewrite(s.t.Context(), nil, s.dir, seq, func(r *journal.Record) ([]byte, error) {
		return bytes.Replace(r.Line, r.Request, []byte(`"redacted"`), 1), nil
	}))(s.t)
	data := fmt.Sprintf(`{"seq":%d,"member":"/request","old":%q,"new":%q}`, seq, w.Old, w.New)
	by := s.log.Append(&journal.Entry{Time: 1, Request: []byte(note("Audit.Redacted", data)), Outcome: []byte(`{"kind":"reply","data":null}`)})
	testkit.Must(s.t, s.log.Flush())
	_, err := s.log.Sync()
	testkit.Must(s.t, err)
	testkit.Must(s.t, w.Commit(by, s.key, 1))
}

// A bus restarts with a disk that is older than an entry that was redacted meanwhile. It does not get the rewritten line, which would
// break the chain: it has the valid entries before that one, and gets the rest when it has the lost entry again.
func TestRefillRedacted(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	b := testbus.Start(t, line)
	s := newScribe(t, key)
	s.write(10, 100)
	m := join(t, b, "alpha", key)
	c, _ := m.copy(t, s, "alpha")
	copied(t, c, s)
	disk := func(from string) (to string) {
		to = filepath.Join(testkit.Dir(t), "copy")
		testkit.Must(t, os.CopyFS(to, os.DirFS(from)))
		return to
	}
	b.Stop()
	older := disk(b.Dir)
	b.Restart()
	s.write(10, 100)
	s.redact(5) // which the older disk has
	copied(t, c, s)
	whole(t, m, s, "alpha")

	newer := b.Dir
	b.Stop()
	b.Dir = disk(older)
	b.Restart()
	filled(t, m, s.log.Head().Seq)
	whole(t, m, s, "alpha")

	b.Stop()
	b.Dir = newer
	b.Restart()
	filled(t, m, s.log.Head().Seq)
	s.redact(15) // which it has not
	copied(t, c, s)
	b.Stop()
	b.Dir = older
	b.Restart()
	testkit.Eventually(t, "the copy reports the entry at which it has stopped", func() bool { return strings.Contains(c.Progress().Wrong, "entry 15") })
	if r := verify(t, m, "alpha"); r.Finding != nil || r.Head.Seq != 14 || c.Progress().Alarm != "" {
		t.Errorf("the stream ends with entry %d: %v; alarm %q", r.Head.Seq, r.Finding, c.Progress().Alarm)
	}
	b.Stop()
	b.Dir = newer
	b.Restart()
	s.write(1, 100)
	copied(t, c, s)
	whole(t, m, s, "alpha")
}

// Another journal under the same name is not mixed in: the copy stops, and says why.
func TestDiverged(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	b := testbus.Start(t, line)
	first := newScribe(t, key)
	first.write(10, 100)
	m := join(t, b, "alpha", key)
	c, stop := m.copy(t, first, "alpha")
	copied(t, c, first)
	stop()
	for name, entries := range map[string]int{"shorter": 5, "longer": 20} {
		other := newScribe(t, key)
		other.write(entries, 50)
		c, stop := m.copy(t, other, "alpha")
		testkit.Eventually(t, name+": the copy stops", func() bool { return c.Progress().Alarm != "" })
		if alarm := c.Progress().Alarm; !strings.Contains(alarm, "not a copy of this journal") {
			t.Errorf("%s: %s", name, alarm)
		}
		stop()
	}
	whole(t, m, first, "alpha")
}

// Two copies that run concurrently do not mix their journals: one of them stops.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	b := testbus.Start(t, line)
	journals := []*scribe{newScribe(t, key), newScribe(t, key)}
	var copies []*cluster.Copy
	for i, s := range journals {
		s.write(1, 10+i)
		m := join(t, b, "alpha", key)
		c, _ := m.copy(t, s, "alpha")
		copies = append(copies, c)
	}
	testkit.Eventually(t, "one of the copies stops", func() bool {
		for i, s := range journals {
			if copies[1-i].Progress().Alarm != "" {
				return true
			}
			s.write(1, 10)
		}
		return false
	})
	r := verify(t, join(t, b, "alpha", key), "alpha")
	if r.Finding != nil {
		t.Fatal(r.Finding)
	}
}

// Verify finds messages that another key signed, and changed messages.
func TestForgedStream(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	stranger, _ := testbus.Key(t, testkit.Dir(t), "stranger", "")
	with := func(header, value string) func(*scribe) *nats.Msg {
		return func(s *scribe) *nats.Msg {
			m := s.message(key)
			m.Header.Set(header, value)
			return m
		}
	}
	for name, c := range map[string]struct {
		forge func(s *scribe) *nats.Msg // the message that is appended after a good entry
		want  string
	}{
		"another key": {func(s *scribe) *nats.Msg { return s.message(stranger) }, "not signed by a key of the kernel"},
		"an altered line": {func(s *scribe) *nats.Msg {
			m := s.message(key)
			m.Data = []byte(strings.Replace(string(m.Data), "xx", "xy", 1))
			return m
		}, "another hash"},
		"an entry twice": {func(s *scribe) *nats.Msg {
			m := s.message(key)
			m.Data = append(m.Data, m.Data...)
			return m
		}, "repeated or moved"},
		"no checkpoint": {func(s *scribe) *nats.Msg {
			m := s.message(key)
			m.Header = nil
			return m
		}, "no checkpoint"},
		"half a line":         {with("Pwos-Part", "2/2"), "follows no part 1"},
		"an unknown encoding": {with("Pwos-Encoding", "zip"), `does not know its encoding "zip"`},
		"not compressed":      {with("Pwos-Encoding", "s2"), "cannot be decompressed"},
		"compressed lines that take all memory": {func(s *scribe) *nats.Msg {
			m := with("Pwos-Encoding", "s2")(s)
			m.Data = append(binary.AppendUvarint(nil, 1<<32-1), m.Data...) // the length that it claims
			return m
		}, "longer than those of a message may be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testbus.Start(t, line)
			s := newScribe(t, key)
			s.write(1, 10)
			m := join(t, b, "alpha", key)
			copier, stop := m.copy(t, s, "alpha")
			copied(t, copier, s)
			stop()
			_, err := m.js.PublishMsg(testkit.Context(t), c.forge(s))
			testkit.Must(t, err)
			if r := verify(t, m, "alpha"); r.Finding == nil || !strings.Contains(r.Finding.Error(), c.want) {
				t.Errorf("found %v, want %q", r.Finding, c.want)
			}
		})
	}
}

// message writes another entry, and returns its message for the stream.
func (s *scribe) message(key *access.HostKey) *nats.Msg {
	s.t.Helper()
	s.write(1, 20)
	r := journal.NewReader(nil, s.dir, journal.ReaderOptions{From: s.log.Synced()})
	record := testkit.Value(r.Next(s.t.Context()))(s.t)
	m := nats.NewMsg(cluster.JournalSubject("alpha"))
	m.Data = append(append(m.Data, record.Line...), '\n')
	checkpoint := s.checkpoint(key, journal.Head{Seq: record.Seq, Hash: record.Hash})
	m.Header.Set("Pwos-Checkpoint", string(checkpoint.AppendLine(nil)))
	testkit.Must(s.t, r.Close())
	return m
}
