// Package lead decides whether this host leads a kernel of a cluster (PROTOCOL 13). It takes over a kernel, waits as its
// standby, and compares the journal with its stream before a start.
package lead

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

// TakenOver is the result of TakeOver.
type TakenOver struct {
	Kernel   string
	StateDir string
	Epoch    int64
	HostKey  string    // of this host, as a line of authorized_keys
	From     string    // that of the previous leader
	Last     uint64    // the last entry of the previous epoch that the bus has
	Time     time.Time // of that entry
	Quorum   bool      // no answered call is missing
	Aside    string    // directory with entries that this host had and the bus does not; "": none
	Agents   int       // programs that the next start continues
}

// Host is a host that leads a kernel, or may lead it.
type Host struct {
	Config *config.Config
	Key    *access.HostKey
	Log    *slog.Logger
}

// TakeOver makes the host the leader of the configured kernel: it fetches the journal from the bus, checks it, and appends
// the entry that begins the epoch of this host. Afterwards the previous leader cannot append anything. No daemon may use the
// state directory.
//
// If it is interrupted, it can be run again.
func (h *Host) TakeOver(ctx context.Context, acceptLoss bool) (t TakenOver, err error) {
	l := &leading{Host: h, acceptLoss: acceptLoss}
	if l.conn, l.js, err = h.dial(ctx); err != nil {
		return t, err
	}
	defer l.conn.Close()
	if err := h.preflight(ctx, l.conn, l.js); err != nil {
		return t, err
	}
	return l.takeOver(ctx)
}

// leading is a host that takes over a kernel, with a connection to the bus.
type leading struct {
	*Host
	conn       *cluster.Conn
	js         cluster.Streams
	acceptLoss bool
}

func (l *leading) takeOver(ctx context.Context) (t TakenOver, err error) {
	name := l.Config.Cluster.Name
	t = TakenOver{Kernel: name, StateDir: l.Config.StateDir, HostKey: l.Key.Public()}
	keys, err := l.keys()
	if err != nil {
		return t, err
	}
	last, err := cluster.LastKey(ctx, l.js, name)
	if err != nil {
		return t, err
	}
	if last == "" {
		return t, fault.ClusterNoStream.New("the bus has no journal of a kernel %q that could be taken over", name).With("kernel", name)
	}
	done, err := cluster.Rejoin(ctx, l.js, name, keys, l.journal())
	t.Aside = done.Aside
	if errors.Is(err, journal.ErrLocked) {
		return t, fmt.Errorf("a kernel runs on %s: end it with \"pwos shutdown\" first: %w", l.Config.StateDir, err)
	}
	if err != nil {
		return t, err
	}
	if err := l.begin(ctx, &t); err != nil {
		return t, err
	}
	source := cluster.Source{Dir: l.journal(), Last: func() uint64 { return t.Last + 1 }, Await: func(context.Context, uint64) {}}
	return t, cluster.Lead(ctx, name, l.Key, source, l.Config.Cluster.Replicas, l.conn)
}

// keys returns the keys of the hosts that may lead the kernel. It fails if this host's is not among them.
func (l *leading) keys() ([]access.PublicKey, error) {
	name := l.Config.Cluster.Name
	keys, err := l.named()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(keys, l.Key.Key()) {
		return nil, fault.ClusterStandby.New("no line of the members file %s lets the key %s lead the kernel %s: add the one that \"pwos cluster key --standby\" prints",
			l.Config.MembersFile(), l.Key.Key().Fingerprint(), name).With("kernel", name)
	}
	return keys, nil
}

// begin journals the epoch of this host, unless an earlier attempt has.
func (l *leading) begin(ctx context.Context, t *TakenOver) (err error) {
	// Unsigned: until the entry is there, the journal does not name this key.
	s, err := state.Open(ctx, l.Config, version.Build(), nil, host.Means{}, l.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	was := s.Self.Booted()
	t.Last = s.Journal.Head().Seq
	led, err := journal.FindLeader(ctx, nil, s.Dir, t.Last)
	if err != nil {
		return err
	}
	if was == nil || led == nil {
		return fault.StateDamaged.New("the record of the kernel %s does not say which host led it last", t.Kernel)
	}
	t.Agents = len(s.Processes.Hosted())
	switch {
	case was.HostKey != t.HostKey:
	case led.TakesOver && led.Seq == t.Last: // the bus may not have it
		t.Epoch, t.Last, t.Quorum = was.Epoch, t.Last-1, was.Epochs[len(was.Epochs)-1].Continues
		return nil
	default:
		return fault.ClusterLeads.New("this host leads the kernel %s already, in epoch %d: start it", t.Kernel, was.Epoch).With("kernel", t.Kernel)
	}
	t.From, t.Quorum = was.HostKey, was.Acknowledge == config.Quorum
	if t.Time, err = timeOf(ctx, s.Dir, t.Last); err != nil {
		return err
	}
	if !t.Quorum && !l.acceptLoss {
		return fault.ClusterLoss.New("the kernel %s answers from its own disk (acknowledge = \"disk\"). What it answered after entry %d of %s, the last one on the bus, "+
			"would be lost, and it is not known whether there is anything: bring its host back, or add --accept-loss", t.Kernel, t.Last, t.Time.Format(time.RFC3339)).With("kernel", t.Kernel)
	}
	here, err := journal.Locate(s.Dir)
	if err != nil {
		return err
	}
	in, err := s.TakeOver(l.Config, t.HostKey, here)
	t.Epoch = in.Epoch
	return err
}

// timeOf returns the time of an entry.
func timeOf(ctx context.Context, dir string, seq uint64) (_ time.Time, err error) {
	r := journal.NewReader(nil, dir, journal.ReaderOptions{From: seq})
	defer func() { err = errors.Join(err, r.Close()) }()
	record, err := r.Next(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read journal: %w", err)
	}
	return time.UnixMilli(record.Time).UTC(), nil
}
