package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// linger is how long the copy waits for more entries before it sends. It limits how often the bus syncs.
	linger = 50 * time.Millisecond
	// ackWait is how long the bus may take to acknowledge a message, and quorumWait the same if answers wait for the copy.
	ackWait, quorumWait = 15 * time.Second, 3 * time.Second
	// minPause and maxPause bound the time between two attempts.
	minPause, maxPause = 250 * time.Millisecond, 5 * time.Second
	// lookEvery is how often a copy with nothing to send checks that the stream still ends with its last message.
	lookEvery = 2 * time.Second
)

// Source is the journal that is copied.
type Source struct {
	Dir    string
	Synced func() uint64 // (*journal.Log).Synced

	// Last returns the last entry to copy, and Await returns when an entry is to be copied. They are (*journal.Log).Synced and
	// AwaitSynced; or Syncing and AwaitSyncing, so that entries are sent while they are synced here. Then a power cut may leave
	// entries in the stream that the journal does not have.
	Last  func() uint64
	Await func(ctx context.Context, entry uint64)

	FS journal.FS // nil: the system's
}

// Copy copies the journal of a kernel to its stream.
type Copy struct {
	name     string
	signer   *journal.HeadSigner
	source   Source
	replicas int
	conn     *nats.Conn
	stream   jetstream.JetStream
	log      *slog.Logger
	leaders  func() []access.PublicKey // keys of the hosts that may lead the kernel; nil: unknown
	quorum   bool                      // answers wait for the copy
	unsynced bool                      // the operator accepts a bus that does not sync
	passed   map[string]bool           // nodes of the bus that keep what this kernel promises
	group    group                     // the last one that was sent
	moves    int                       // to other nodes, in search of the one that leads the stream

	mu     sync.Mutex
	told   *Quorum // nil: progress is not reported
	copied uint64
	alarm  string // why the copy has stopped permanently; "": it has not
	wrong  string // why it makes no progress at present; "": it does
}

// NewCopy returns a Copy that does nothing until Run.
func NewCopy(name string, signer journal.Signer, source Source, replicas int, conn *nats.Conn, log *slog.Logger) (*Copy, error) {
	stream, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("use the bus: %w", err)
	}
	heads, err := journal.NewHeadSigner(signer)
	if err != nil {
		return nil, err
	}
	return &Copy{name: name, signer: heads, source: source, replicas: replicas, conn: conn, stream: stream, log: log}, nil
}

// Quorum has the functions that a Copy reports to.
type Quorum struct {
	Acknowledged func(through uint64) // a majority of the bus has all entries up to through; nil: no answer waits for that
	Fenced       func(error)          // the stream has entries that the journal does not have; if no answer waits, only entries of another leader

	// Lease tells whether this host still holds the lease. It is called at each change.
	Lease func(held bool)
}

// Tell sets the functions that the copy reports its progress to; nil: none. If answers wait for the copy, it sends entries
// without a delay. Only Tell(nil) may be called after Run.
func (c *Copy) Tell(told *Quorum) {
	c.set(func() { c.told = told })
	if told != nil {
		c.quorum = told.Acknowledged != nil
	}
}

// acknowledged records the last entry that the bus has, and reports it.
func (c *Copy) acknowledged(through uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copied = through
	if c.told != nil && c.told.Acknowledged != nil {
		c.told.Acknowledged(through)
	}
}

// leads reports whether this host holds the lease.
func (c *Copy) leads(held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told != nil && c.told.Lease != nil {
		c.told.Lease(held)
	}
}

// Progress is the progress of a Copy.
type Progress struct {
	Copied uint64 // the last entry that the bus has acknowledged to this kernel; 0: none since its start
	Alarm  string // why the copy has stopped permanently; "": it has not
	Wrong  string // why it makes no progress at present; "": it does
}

// Progress returns the progress of the copy.
func (c *Copy) Progress() Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Progress{c.copied, c.alarm, c.wrong}
}

// errDiverged says that the stream has entries that the journal does not have.
var errDiverged = errors.New("the stream is not a copy of this journal")

// errDeposed says that another host that leads the kernel has written them.
var errDeposed = fmt.Errorf("another host leads this kernel: %w", errDiverged)

// Run copies until ctx is done, or the stream has entries that the journal does not have.
func (c *Copy) Run(ctx context.Context) {
	pause := minPause
	for ctx.Err() == nil {
		before := c.Progress().Copied
		err := c.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errDiverged) {
			c.log.Error("the copy of the journal has stopped", "error", err)
			c.set(func() {
				c.alarm = err.Error()
				if c.told != nil && (c.quorum || errors.Is(err, errDeposed)) {
					c.told.Fenced(err)
				}
			})
			return
		}
		if c.Progress().Copied > before {
			pause = minPause
		}
		if errors.Is(err, errMoved) {
			continue
		}
		if c.conn.IsConnected() { // otherwise the connection has logged it
			c.log.Warn("the journal is not copied at present", "error", err)
		}
		c.set(func() { c.wrong = err.Error() })
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, maxPause)
	}
}

func (c *Copy) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// follow copies until an error. It reads the end of the stream again after each disconnection, since the bus may have lost
// entries.
func (c *Copy) follow(ctx context.Context) error {
	if !c.conn.IsConnected() {
		if err := c.conn.LastError(); err != nil {
			return fmt.Errorf("the bus is not reached: %w", unreached(err))
		}
		return errors.New("the bus is not reached")
	}
	life := ctx
	ctx, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	var watch sync.WaitGroup
	lost := c.conn.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	watch.Go(func() {
		defer c.conn.RemoveStatusListener(lost)
		select {
		case <-lost:
			cancel(errors.New("the connection to the bus was lost"))
		case <-ctx.Done():
		}
	})
	defer watch.Wait()
	defer cancel(nil)

	at, err := c.align(ctx)
	if err != nil {
		return err
	}
	if c.quorum && c.approach(life, at.leader) {
		return errMoved
	}
	if err := c.gate(ctx); err != nil {
		return err
	}
	c.set(func() { c.wrong = "" })
	c.acknowledged(at.Seq)
	if err := c.send(ctx, at.Seq+1, at.last); ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// errMoved says that the connection goes to another node from now on.
var errMoved = errors.New("the connection moves to another node")

// approach has the connection go to another node if this one does not lead the stream: the node that does acknowledges a
// message sooner than one that forwards it. It returns false if the connection stays, also after each node was tried.
func (c *Copy) approach(ctx context.Context, leader string) bool {
	if leader == "" || leader == c.conn.ConnectedServerName() || c.moves == len(c.conn.Servers())-1 {
		c.moves = 0
		return false
	}
	c.moves++
	ctx, cancel := context.WithTimeout(ctx, minPause)
	defer cancel()
	there := c.conn.StatusChanged(nats.CONNECTED)
	defer c.conn.RemoveStatusListener(there)
	if c.conn.ForceReconnect() != nil {
		return false
	}
	select {
	case <-there:
	case <-ctx.Done():
	}
	return true
}

// streamEnd is the end of a stream.
type streamEnd struct {
	journal.Head        // its last entry
	last         uint64 // its last message
	leader       string // the node that leads it; "": none
}

// align finds the end of the stream, which it makes if there is none.
func (c *Copy) align(ctx context.Context) (at streamEnd, err error) {
	stream, err := openStream(ctx, c.stream, makeStream, c.name, c.replicas)
	if err != nil {
		return at, fmt.Errorf("open stream: %w", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return at, fmt.Errorf("look at stream: %w", err)
	}
	at.last = info.State.LastSeq
	if info.Cluster != nil {
		at.leader = info.Cluster.Leader
	}
	for seq := at.last; seq > 0 && seq >= info.State.FirstSeq; seq-- {
		m, ours, err := readMessage(ctx, stream, seq)
		if err != nil {
			return at, fmt.Errorf("read stream: %w", err)
		}
		if part, of, ok := partOf(m.Header.Get(partHeader)); !ours || ok && part < of {
			continue // or a part of an incomplete line
		}
		checkpoint, err := journal.ParseCheckpoint([]byte(m.Header.Get(checkpointHeader)))
		if err != nil {
			return at, fmt.Errorf("%w: its message %d has no checkpoint", errDiverged, seq)
		}
		at.Head = checkpoint.Head
		err = c.compare(ctx, at.Head)
		if errors.Is(err, errDiverged) && c.deposed(checkpoint) {
			err = fmt.Errorf("%w, with the key %s (%v)", errDeposed, fingerprint(checkpoint.Key), err)
		}
		return at, err
	}
	if at.last > 0 && info.State.Msgs == 0 {
		return at, fmt.Errorf("%w: its messages up to %d were removed", errDiverged, at.last)
	}
	return at, nil
}

// deposed reports whether another host that may lead the kernel has signed the end of the stream.
func (c *Copy) deposed(at journal.Checkpoint) bool {
	if c.leaders == nil || at.Verify() != nil || at.Key == c.signer.Key() {
		return false
	}
	return slices.ContainsFunc(c.leaders(), func(key access.PublicKey) bool { return key.String() == at.Key })
}

// compare returns errDiverged if the journal does not have the entry that the stream ends with.
func (c *Copy) compare(ctx context.Context, at journal.Head) (err error) {
	if last := c.source.Last(); at.Seq > last {
		return fmt.Errorf("%w: it goes up to entry %d, the journal only to %d: another kernel has this name, or this state directory is an older copy", errDiverged, at.Seq, last)
	}
	r := c.read(at.Seq)
	defer func() { err = errors.Join(err, r.Close()) }()
	record, err := r.Next(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read journal: %w", err)
	case record.Seq != at.Seq || record.Hash != at.Hash:
		return fmt.Errorf("%w: its entry %d has the hash %s, the journal's has %s: another kernel has this name, or the journal was restored and went on differently", errDiverged, at.Seq, at.Hash, record.Hash)
	}
	return nil
}

func (c *Copy) read(from uint64) *journal.Reader {
	return journal.NewReader(c.source.FS, c.source.Dir, journal.ReaderOptions{From: from, Limit: c.source.Last, Lines: true})
}

// send copies the entries from from on. last is the number of the stream's last message, which the next message must
// follow. One message is in flight at a time: if it is refused, the bus must not accept a later one with the number that it
// would have had.
func (c *Copy) send(ctx context.Context, from, last uint64) (err error) {
	r := c.read(from)
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		if err := c.await(ctx, from, last); err != nil {
			return err
		}
		if ctx.Err() != nil || !c.quorum && !sleep(ctx, linger) {
			return ctx.Err()
		}
		var through uint64
		if through, last, err = c.catchUp(ctx, r, last); err != nil {
			return err
		}
		if through > 0 {
			from = through + 1
		}
	}
}

// await waits until an entry of the journal is to be copied, or ctx is done. Meanwhile it checks that the stream still ends
// with message last, so that an idle kernel notices that another host has taken over.
func (c *Copy) await(ctx context.Context, entry, last uint64) error {
	for ctx.Err() == nil {
		waiting, stop := context.WithTimeout(ctx, lookEvery)
		c.source.Await(waiting, entry)
		idle := waiting.Err() != nil
		stop()
		if !idle {
			return nil
		}
		stream, err := c.stream.Stream(ctx, Stream(c.name))
		if err != nil {
			return fmt.Errorf("look at stream: %w", err)
		}
		if now := stream.CachedInfo().State.LastSeq; now != last {
			return fmt.Errorf("the stream ends with message %d, and this copy of it with %d", now, last)
		}
	}
	return nil
}

// catchUp sends the rest of the journal from r on. It returns the last entry, 0 if there was none, and the number of the
// stream's last message.
func (c *Copy) catchUp(ctx context.Context, r *journal.Reader, last uint64) (through, _ uint64, err error) {
	g := &c.group
	for more := true; more; {
		var stopped error
		if more, stopped = g.gather(ctx, r); len(g.lines) == 0 {
			return through, last, stopped
		}
		most := maxPayload(c.conn)
		if most < MinPayload {
			return through, last, fault.ClusterBus.New("a message of the bus may have %d bytes, and a journal is copied with at least %d: raise max_payload of its server", most, MinPayload)
		}
		list, err := g.messages(c.name, c.signer, most, time.Now())
		if err != nil {
			return through, last, err
		}
		for _, m := range list {
			if err := c.append(ctx, m, last); err != nil {
				return through, last, err
			}
			last++
		}
		through = g.head.Seq
		c.acknowledged(through)
		if stopped != nil {
			return through, last, stopped
		}
	}
	return through, last, nil
}

// append appends a message to the stream, after message last.
func (c *Copy) append(ctx context.Context, m *nats.Msg, last uint64) error {
	wait := ackWait
	if c.quorum {
		wait = quorumWait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if _, err := c.stream.PublishMsg(ctx, m, jetstream.WithExpectLastSequence(last), jetstream.WithExpectStream(Stream(c.name))); err != nil {
		if c.quorum && errors.Is(err, context.DeadlineExceeded) {
			err = errors.Join(err, c.conn.ForceReconnect()) // to another node, if this one hangs
		}
		return fmt.Errorf("send to stream: %w", err)
	}
	return nil
}

// gather makes g the next group of a journal. more says that there may be another one at once. An error comes with the lines
// before it.
func (g *group) gather(ctx context.Context, r *journal.Reader) (more bool, err error) {
	g.reset()
	for len(g.lines) < groupBytes {
		record, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read journal: %w", err)
		}
		if record.Redacted { // its hash in the chain is that of the line that it had
			return false, fmt.Errorf("the bus has lost entry %d, of which a member was removed since: the chain there cannot go on, unless the disk of the bus is restored", record.Seq)
		}
		g.lines = append(append(g.lines, record.Line...), '\n')
		g.head = journal.Head{Seq: record.Seq, Hash: record.Hash}
	}
	return true, nil
}
