package lead

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// busPatience is how long a start waits for the bus, to compare its journal with the stream.
const busPatience = 5 * time.Second

// preflightPatience is the same for the preflight: a bus whose nodes elect a leader, as at their first start, must not keep a client
// waiting that has started this kernel.
const preflightPatience = 2 * time.Second

// Rejoin compares the journal with its stream before the state is rebuilt, if answers wait for the bus, or another host
// leads the kernel. If the bus cannot be reached, the kernel starts with its own journal; if answers wait for the bus, none
// are given until it is back. Then Rejoin fails if the stream may have entries that the journal has lost, since others would
// take their place.
func (h *Host) Rejoin(ctx context.Context) error {
	c := &h.Config.Cluster
	if c.Name == "" {
		return nil
	}
	keys, err := h.leaders()
	if err != nil || c.Acknowledge != config.Quorum && len(keys) == 1 {
		return err
	}
	conn, js, err := h.dial(ctx)
	if err != nil {
		return h.startAnyway(err)
	}
	defer conn.Close()
	if c.Acknowledge != config.Quorum {
		last, err := cluster.LastKey(ctx, js, c.Name)
		if err != nil {
			return h.startAnyway(err)
		}
		if last == h.Key.Key().String() || !slices.ContainsFunc(keys, func(k access.PublicKey) bool { return k.String() == last }) {
			return nil
		}
	}
	if err := h.preflight(ctx, conn, js); errors.Is(err, fault.ClusterBus) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return h.startAnyway(err)
	} else if err != nil {
		return err
	}
	done, err := h.fetch(ctx, js, keys)
	if errors.Is(err, fault.ClusterBus) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return h.startAnyway(err)
	}
	if err != nil {
		return err
	}
	if done.Fetched > 0 {
		h.Log.Warn("entries were fetched from the bus, which the journal did not have", "entries", done.Fetched)
	}
	return h.keepBoot()
}

// preflight refuses a bus that does not keep what this kernel promises, if its answers wait for the bus. The copy repeats it for a bus that
// is reached later.
func (h *Host) preflight(ctx context.Context, conn *cluster.Conn, js cluster.Streams) error {
	c := &h.Config.Cluster
	if c.Acknowledge != config.Quorum {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, preflightPatience)
	defer stop()
	all, err := cluster.Preflight(ctx, conn, js, c.Name, c.Replicas)
	if err != nil {
		return err
	}
	return all.Refusal(c.AcceptUnsynced)
}

// startAnyway has the kernel start without the bus, unless it must not.
func (h *Host) startAnyway(err error) error {
	begun, failed := h.begun()
	if failed != nil {
		return failed
	}
	if name := h.Config.Cluster.Name; begun && h.Config.Cluster.Acknowledge == config.Quorum && !h.sameBoot() {
		return fault.ClusterBus.New("the kernel %s starts once its bus is reached: its journal has not been compared with the bus since this machine was started, and may lack entries that the bus has: %v", name, err).
			With("kernel", name)
	}
	h.Log.Warn("the journal is not compared with the bus at this start", "error", err)
	if !begun {
		return h.keepBoot()
	}
	return nil
}

// begun reports whether there is a journal.
func (h *Host) begun() (bool, error) {
	files, err := os.ReadDir(h.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(files) > 0, err
}

// bootFile has the id of the machine's start during which the journal was last compared with the stream, or was begun. In quorum
// mode, entries are sent while they are synced, so a crash of the machine may leave entries in the stream that the journal does
// not have. While the machine runs, the page cache has all that was sent.
func (h *Host) bootFile() string { return filepath.Join(h.Config.StateDir, "boot") }

// sameBoot reports whether the journal has been compared with the stream since the machine was started. It is false if that
// is not known.
func (h *Host) sameBoot() bool {
	text, err := os.ReadFile(h.bootFile())
	return err == nil && len(text) > 0 && string(text) == bootID()
}

// keepBoot records that the journal was compared with the stream.
func (h *Host) keepBoot() error {
	if h.sameBoot() {
		return nil
	}
	return replace.File(h.bootFile(), []byte(bootID()), 0o600)
}

// dial connects to the bus, within busPatience.
func (h *Host) dial(ctx context.Context) (*cluster.Conn, cluster.Streams, error) {
	ctx, stop := context.WithTimeout(ctx, busPatience)
	defer stop()
	return cluster.Dial(ctx, h.Bus(slog.New(slog.DiscardHandler)))
}

// Bus returns the options of a connection to the configured bus.
func (h *Host) Bus(log *slog.Logger) cluster.Options {
	c := &h.Config.Cluster
	return cluster.Options{Name: c.Name, Servers: c.Bus, Authority: c.Authority, Key: h.Key, Log: log}
}

// journal returns the directory of the journal.
func (h *Host) journal() string { return filepath.Join(h.Config.StateDir, "journal") }

// fetch makes the journal end with the end of the stream, or later.
func (h *Host) fetch(ctx context.Context, js cluster.Streams, keys []access.PublicKey) (cluster.Rejoined, error) {
	done, err := cluster.Rejoin(ctx, js, h.Config.Cluster.Name, keys, h.journal())
	if done.Aside != "" {
		h.Log.Error("entries of the journal that the bus does not have were set aside", "first", done.First, "last", done.Last, "directory", done.Aside)
	}
	return done, err
}

// leaders returns the keys of the hosts that may lead the kernel: that of this host, and those in the members file.
func (h *Host) leaders() ([]access.PublicKey, error) {
	keys, err := h.named()
	if err == nil && !slices.Contains(keys, h.Key.Key()) {
		keys = append(keys, h.Key.Key())
	}
	return keys, err
}

// named returns the keys of the hosts that may lead the kernel according to the members file.
func (h *Host) named() ([]access.PublicKey, error) {
	members := cluster.NewMembers(h.Config.MembersFile())
	keys, err := members.Keys(h.Config.Cluster.Name)
	return keys, errors.Join(err, members.Close())
}

// Deposed returns an error if last, the last start in the journal, says that another host leads the kernel. last is nil if
// the kernel has never started. A standby never starts a journal.
func (h *Host) Deposed(last *schema.BootedInput) error {
	name := h.Config.Cluster.Name
	if name == "" || last != nil && last.HostKey == h.Key.Public() {
		return nil
	}
	if last == nil {
		return h.begins()
	}
	keys, err := h.leaders()
	if err != nil {
		return err
	}
	leader, _, fail := access.ParsePublicKey(last.HostKey)
	if fail != nil || !slices.Contains(keys, leader) {
		return nil // the directory is a copy, which Begin refuses
	}
	return fault.ClusterFenced.New("another host leads the kernel %s, with the key %s in epoch %d: to lead here, run %s",
		name, leader.Fingerprint(), last.Epoch, takeover(name)).With("kernel", name)
}

func takeover(kernel string) string { return quote.Command("pwos", "cluster", "takeover", kernel) }

// begins returns an error if this host, which has no journal of the kernel, may not start one: a standby, or a host whose key the
// members file does not have for the kernel, while it has others.
func (h *Host) begins() error {
	name, members := h.Config.Cluster.Name, cluster.NewMembers(h.Config.MembersFile())
	list, _, err := members.List()
	own := slices.IndexFunc(list, func(k *access.AuthorizedKey) bool { return k.Kernel == name && k.Key == h.Key.Key() })
	others := slices.ContainsFunc(list, func(k *access.AuthorizedKey) bool { return k.Kernel == name && k.Key != h.Key.Key() })
	switch {
	case own >= 0 && list[own].Standby:
		err = errors.Join(err, fault.ClusterFenced.New("this host may lead the kernel %s only in place of another one, and has no record of it: run %s", name, takeover(name)).With("kernel", name))
	case own < 0 && others:
		err = errors.Join(err, fault.ClusterFenced.New("the state directory %s has no record of the kernel %s, and the members file %s has other keys for it than %s: "+
			"start the kernel with the directory that has the record, or, if that is lost, add the line that \"pwos cluster key --standby\" prints, and run %s",
			h.Config.StateDir, name, h.Config.MembersFile(), h.Key.Key().Fingerprint(), takeover(name)).With("kernel", name))
	}
	return errors.Join(err, members.Close())
}

// LastOnBus returns the number of the last entry of the kernel that the bus has; 0: none.
func (h *Host) LastOnBus(ctx context.Context) (uint64, error) {
	conn, js, err := h.dial(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	last, err := cluster.LastCheckpoint(ctx, js, h.Config.Cluster.Name)
	if err != nil || last == nil {
		return 0, err
	}
	return last.Seq, nil
}
