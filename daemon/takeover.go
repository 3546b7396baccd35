package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
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

// TakeOver makes this host the leader of the configured kernel: it fetches the journal from the bus, checks it, and appends
// the entry that begins the epoch of this host. Afterwards the previous leader cannot append anything. args are the
// daemon's flags. No daemon may use the state directory.
//
// If it is interrupted, it can be run again.
func TakeOver(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, acceptLoss bool) (t TakenOver, err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, version.Build())
	if err != nil {
		return t, err
	}
	if cfg.Origin, err = cfg.Principal(); err != nil {
		return t, err
	}
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	if err := unixsock.EnsurePrivateDir(cfg.StateDir); err != nil {
		return t, err
	}
	key, err := access.OpenHostKey(cfg.StateDir)
	if err != nil {
		return t, err
	}
	l := &leading{config: &cfg, key: key, log: logging.New(stderr, logForm(&cfg, getenv)), acceptLoss: acceptLoss}
	dialing, stop := context.WithTimeout(ctx, busPatience)
	defer stop()
	c := &cfg.Cluster
	l.conn, l.js, err = cluster.Dial(dialing, cluster.Options{Name: c.Name, Servers: c.Bus, Authority: c.Authority, Key: key, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return t, err
	}
	defer l.conn.Close()
	return l.takeOver(ctx)
}

// leading is a host that takes over a kernel.
type leading struct {
	config     *config.Config
	key        *access.HostKey
	log        *slog.Logger
	conn       *cluster.Conn
	js         cluster.Streams
	acceptLoss bool
}

func (l *leading) takeOver(ctx context.Context) (t TakenOver, err error) {
	name := l.config.Cluster.Name
	t = TakenOver{Kernel: name, StateDir: l.config.StateDir, HostKey: l.key.Public()}
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
	done, err := cluster.Rejoin(ctx, l.js, name, keys, l.dir())
	t.Aside = done.Aside
	if errors.Is(err, journal.ErrLocked) {
		return t, fmt.Errorf("a kernel runs on %s: end it with \"pwos shutdown\" first: %w", l.config.StateDir, err)
	}
	if err != nil {
		return t, err
	}
	if err := l.begin(ctx, &t); err != nil {
		return t, err
	}
	source := cluster.Source{Dir: l.dir(), Synced: func() uint64 { return t.Last + 1 }, Await: func(context.Context, uint64) {}}
	return t, cluster.Lead(ctx, name, l.key, source, l.config.Cluster.Replicas, l.conn)
}

func (l *leading) dir() string { return filepath.Join(l.config.StateDir, "journal") }

// fetch makes the journal end with the end of the stream.
func (l *leading) fetch(ctx context.Context, keys []access.PublicKey) error {
	done, err := cluster.Rejoin(ctx, l.js, l.config.Cluster.Name, keys, l.dir())
	if done.Aside != "" {
		l.log.Error("entries of the journal that the bus does not have were set aside", "first", done.First, "last", done.Last, "directory", done.Aside)
	}
	return err
}

// keys returns the keys of the hosts that may lead the kernel. It fails if this host's is not among them.
func (l *leading) keys() ([]access.PublicKey, error) {
	name := l.config.Cluster.Name
	members := cluster.NewMembers(l.config.MembersFile())
	keys, err := members.Keys(name)
	if err = errors.Join(err, members.Close()); err != nil {
		return nil, err
	}
	if !slices.Contains(keys, l.key.Key()) {
		return nil, fault.ClusterStandby.New("no line of the members file %s lets the key %s lead the kernel %s: add the one that \"pwos cluster key --standby\" prints",
			l.config.MembersFile(), l.key.Key().Fingerprint(), name).With("kernel", name)
	}
	return keys, nil
}

// begin journals the epoch of this host, unless an earlier attempt has.
func (l *leading) begin(ctx context.Context, t *TakenOver) (err error) {
	// Unsigned: until the entry is there, the journal does not name this key.
	s, err := state.Open(ctx, l.config, version.Build(), nil, host.Means{}, l.log)
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
	in, err := s.TakeOver(l.config, t.HostKey, here)
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
