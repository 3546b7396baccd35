package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

// steps are the batches that a scribe writes: the number of entries, and the size of each.
type steps [][2]int

func (s *scribe) all(what steps) {
	for _, w := range what {
		s.write(w[0], w[1])
	}
}

// TestRejoin rejoins a journal and a stream with the same beginning, in every relation that they can have.
func TestRejoin(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		stream, journal steps
		aside           uint64 // the first entry that is set aside; 0: none
		fetched, endsAt uint64
	}{
		{name: "the same", stream: steps{{5, 10}}, journal: steps{{5, 10}}, endsAt: 5},
		{name: "a tail that was not sent", stream: steps{{5, 10}}, journal: steps{{5, 10}, {3, 20}}, endsAt: 8},
		{name: "an older copy", stream: steps{{5, 10}, {7, 30}}, journal: steps{{5, 10}, {2, 30}}, fetched: 5, endsAt: 12},
		{name: "nothing here", stream: steps{{5, 10}, {7, 30}}, fetched: 12, endsAt: 12},
		{name: "nothing there", journal: steps{{5, 10}}, endsAt: 5},
		{name: "another tail", stream: steps{{5, 10}, {4, 20}}, journal: steps{{5, 10}, {6, 30}}, aside: 6, fetched: 4, endsAt: 9},
		{name: "another tail within a message", stream: steps{{9, 10}, {4, 20}}, journal: steps{{7, 10}, {6, 30}}, aside: 8, fetched: 6, endsAt: 13},
		{name: "nothing in common", stream: steps{{3, 10}}, journal: steps{{5, 11}}, aside: 1, fetched: 3, endsAt: 3},
		{name: "a line in parts", stream: steps{{2, 10}, {1, 3 << 20}, {1, 5}}, journal: steps{{2, 10}, {1, 6}}, aside: 3, fetched: 2, endsAt: 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
			m := join(t, testbus.Start(t, line), "alpha", key)
			there := newScribe(t, key)
			for _, group := range test.stream { // a message each
				there.all(steps{group})
				c, stop := m.copy(t, there, "alpha")
				copied(t, c, there)
				stop()
			}
			here := newScribe(t, key)
			here.all(test.journal)
			testkit.Must(t, here.log.Close())
			done := testkit.Value(cluster.Rejoin(testkit.Context(t), m.js, "alpha", []access.PublicKey{key.Key()}, here.dir))(t)
			if done.First != test.aside || done.Fetched != test.fetched || (done.Aside != "") != (test.aside > 0) {
				t.Errorf("Rejoin returned %+v", done)
			}
			if test.aside > 0 {
				wantAside(t, here.dir, test.aside, done.Aside)
			}
			here.open()
			if end := here.log.Head().Seq; end != test.endsAt {
				t.Errorf("the journal ends with entry %d, want %d", end, test.endsAt)
			}
			here.write(2, 40)
			c, stop := m.copy(t, here, "alpha")
			copied(t, c, here)
			stop()
			whole(t, m, here, "alpha")
		})
	}
}

func wantAside(t *testing.T, dir string, first uint64, aside string) {
	t.Helper()
	if want := filepath.Join(dir, fmt.Sprintf("diverged-%d-", first)); !strings.HasPrefix(aside, want) {
		t.Errorf("set aside in %s, want %s…", aside, want)
	}
	if files := testkit.Value(os.ReadDir(aside))(t); len(files) == 0 {
		t.Error("the directory with the entries that were set aside is empty")
	}
}

// TestRejoinTrusts shows that Rejoin neither fetches entries that another key has signed, nor sets entries aside for them.
func TestRejoinTrusts(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	m := join(t, testbus.Start(t, line), "alpha", key)
	other, _ := testbus.Key(t, testkit.Dir(t), "alpha", "")
	there := newScribe(t, other)
	there.write(5, 10)
	c := testkit.Value(cluster.NewCopy("alpha", other, there.source(), 1, m.conn, quiet))(t)
	stop := running(t, c)
	copied(t, c, there)
	stop()
	here := newScribe(t, key)
	here.write(4, 11)
	testkit.Must(t, here.log.Close())
	_, err := cluster.Rejoin(testkit.Context(t), m.js, "alpha", []access.PublicKey{key.Key()}, here.dir)
	if !errors.Is(err, fault.ClusterFenced) {
		t.Errorf("rejoin: %v", err)
	}
	log, rec, err := journal.Open(journal.Options{Dir: here.dir})
	testkit.Must(t, err)
	testkit.Must(t, log.Close())
	if rec.Head.Seq != 4 {
		t.Errorf("the journal ends with entry %d", rec.Head.Seq)
	}
}

// TestQuorumIsTold shows that a copy reports each entry that the bus has, and another writer.
func TestQuorumIsTold(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	m := join(t, testbus.Start(t, line), "alpha", key)
	s := newScribe(t, key)
	s.write(3, 10)
	told, fenced := make(chan uint64, 1000), make(chan error, 1)
	begin := func(s *scribe) (stop func()) {
		c := testkit.Value(cluster.NewCopy("alpha", key, s.source(), 1, m.conn, quiet))(t)
		c.Tell(&cluster.Quorum{Acknowledged: func(through uint64) { told <- through }, Fenced: func(err error) { fenced <- err }})
		return running(t, c)
	}
	until := func(entry uint64) {
		t.Helper()
		for at := uint64(0); at < entry; {
			select {
			case at = <-told:
				if at > s.log.Synced() {
					t.Fatalf("the copy reports entry %d, which is not on the disk", at)
				}
			case <-testkit.Context(t).Done():
				t.Fatalf("the copy does not report entry %d", entry)
			}
		}
	}
	stop := begin(s)
	until(3)
	for i := range uint64(20) {
		s.write(1, 10)
		until(4 + i)
	}
	stop()

	other := newScribe(t, key)
	other.write(30, 11)
	defer begin(other)()
	select {
	case <-fenced:
	case at := <-told:
		t.Errorf("another journal is acknowledged up to entry %d", at)
	case <-testkit.Context(t).Done():
		t.Error("the copy does not report another writer")
	}
}

// TestSentWhileSynced: a copy in quorum mode sends entries while they are synced, and continues to send
// later ones. Entries that a power cut then removes from the journal are fetched at the next start.
func TestSentWhileSynced(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	m := join(t, testbus.Start(t, line), "alpha", key)
	s := newScribe(t, key)
	s.write(3, 10)
	lost := filepath.Join(testkit.Dir(t), "journal")
	testkit.Must(t, os.CopyFS(lost, os.DirFS(s.dir)))
	testkit.Must(t, s.log.Close())
	disk := &heldSyncs{release: make(chan struct{})}
	release := sync.OnceFunc(func() { close(disk.release) })
	t.Cleanup(release)
	log, _, err := journal.Open(journal.Options{Dir: s.dir, Signer: key, FS: disk})
	testkit.Must(t, err)
	s.log = log
	begin := func() (c *cluster.Copy, stop func()) {
		source := cluster.Source{Dir: s.dir, Synced: log.Synced, Last: log.Syncing, Await: log.AwaitSyncing}
		c = testkit.Value(cluster.NewCopy("alpha", key, source, 1, m.conn, quiet))(t)
		c.Tell(&cluster.Quorum{Acknowledged: func(uint64) {}, Fenced: func(err error) { t.Error(err) }})
		return c, running(t, c)
	}
	sent := func(c *cluster.Copy, entry uint64) {
		t.Helper()
		testkit.Eventually(t, "the entry is sent", func() bool { return c.Progress().Copied == entry })
	}
	c, stop := begin()
	sent(c, 3)
	for range 5 {
		log.Append(&journal.Entry{Time: 1, Request: []byte(`"x"`), Outcome: []byte(`"ok"`)})
	}
	testkit.Must(t, log.Flush())
	disk.held.Store(true)
	synced := make(chan error, 1)
	go func() {
		_, err := log.Sync()
		synced <- err
	}()
	sent(c, 8)
	stop()
	c, stop = begin()
	sent(c, 8)
	stop()
	if synced := log.Synced(); synced != 3 {
		t.Errorf("entry %d is durable before its sync has ended", synced)
	}
	done := testkit.Value(cluster.Rejoin(testkit.Context(t), m.js, "alpha", []access.PublicKey{key.Key()}, lost))(t)
	if done.Fetched != 5 || done.Aside != "" {
		t.Errorf("the next start: %+v", done)
	}
	release()
	testkit.Must(t, testkit.Receive(t, synced, "the end of the sync"))
}

// heldSyncs is a file system on which syncs do not end before release is closed, while they are held.
type heldSyncs struct {
	journal.OSFS

	held    atomic.Bool
	release chan struct{}
}

func (d *heldSyncs) Create(name string) (journal.File, error) {
	f, err := d.OSFS.Create(name)
	return &heldFile{f, d}, err
}

type heldFile struct {
	journal.File

	disk *heldSyncs
}

func (f *heldFile) Sync() error {
	if f.disk.held.Load() {
		<-f.disk.release
	}
	return f.File.Sync()
}
