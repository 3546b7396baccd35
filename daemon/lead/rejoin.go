package lead

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// busPatience is how long a start waits for the bus to compare its journal with.
const busPatience = 5 * time.Second

// Rejoin compares the journal with its stream before anything is made of it: if answers wait for the bus, or another host leads
// the kernel. While the bus is away the kernel starts with what it has; if answers wait for the bus, nothing of that is
// shown until the bus is back.
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
	done, err := h.fetch(ctx, js, keys)
	if errors.Is(err, fault.ClusterBus) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return h.startAnyway(err)
	}
	if err == nil && done.Fetched > 0 {
		h.Log.Warn("entries were fetched from the bus, which the journal did not have", "entries", done.Fetched)
	}
	return err
}

func (h *Host) startAnyway(err error) error {
	h.Log.Warn("the journal is not compared with the bus at this start", "error", err)
	return nil
}

// dial connects to the bus, within busPatience.
func (h *Host) dial(ctx context.Context) (*cluster.Conn, cluster.Streams, error) {
	ctx, stop := context.WithTimeout(ctx, busPatience)
	defer stop()
	return cluster.Dial(ctx, h.Bus(slog.New(slog.DiscardHandler)))
}

// Bus is the bus of the configuration.
func (h *Host) Bus(log *slog.Logger) cluster.Options {
	c := &h.Config.Cluster
	return cluster.Options{Name: c.Name, Servers: c.Bus, Authority: c.Authority, Key: h.Key, Log: log}
}

// journal is the directory of the journal.
func (h *Host) journal() string { return filepath.Join(h.Config.StateDir, "journal") }

// fetch makes the journal end as the stream does, or later.
func (h *Host) fetch(ctx context.Context, js cluster.Streams, keys []access.PublicKey) (cluster.Rejoined, error) {
	done, err := cluster.Rejoin(ctx, js, h.Config.Cluster.Name, keys, h.journal())
	if done.Aside != "" {
		h.Log.Error("entries of the journal that the bus does not have were set aside", "first", done.First, "last", done.Last, "directory", done.Aside)
	}
	return done, err
}

// leaders returns the keys of the hosts that may lead the kernel: this one's, and those that the members file names.
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

// Deposed returns an error if another host leads the kernel, as the last start in its record says; nil: there was none. A standby
// never begins a record.
func (h *Host) Deposed(last *schema.BootedInput) error {
	name := h.Config.Cluster.Name
	if name == "" || last != nil && last.HostKey == h.Key.Public() {
		return nil
	}
	if last == nil {
		return h.standbyBegins()
	}
	keys, err := h.leaders()
	if err != nil {
		return err
	}
	leader, _, fail := access.ParsePublicKey(last.HostKey)
	if fail != nil || !slices.Contains(keys, leader) {
		return nil // then it is a copy
	}
	return fault.ClusterFenced.New("another host leads the kernel %s, with the key %s in epoch %d: to lead here, run \"pwos cluster takeover %s\"",
		name, leader.Fingerprint(), last.Epoch, name).With("kernel", name)
}

// standbyBegins returns an error if this host, which has no record of the kernel, may lead it only in place of another one.
func (h *Host) standbyBegins() error {
	name, members := h.Config.Cluster.Name, cluster.NewMembers(h.Config.MembersFile())
	list, _, err := members.List()
	if slices.ContainsFunc(list, func(k *access.AuthorizedKey) bool { return k.Standby && k.Key == h.Key.Key() }) {
		err = errors.Join(err, fault.ClusterFenced.New("this host may lead the kernel %s only in place of another one, and has no record of it: run \"pwos cluster takeover %s\"", name, name).With("kernel", name))
	}
	return errors.Join(err, members.Close())
}

// LastOnBus returns the last entry of the kernel that its bus has; 0: none.
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
