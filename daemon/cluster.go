package daemon

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cluster/abroad"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/lead"
)

// newLeader returns this host as one that may lead the configured kernel. It creates the host key if there is none.
func newLeader(cfg *config.Config, log *slog.Logger) (h *lead.Host, err error) {
	h = &lead.Host{Config: cfg, Log: log}
	if cfg.Origin, err = cfg.Principal(); err == nil {
		h.Key, err = access.OpenHostKey(cfg.StateDir)
	}
	return h, err
}

// joinCluster joins the configured cluster, if there is one. A kernel for one call joins only if its answer waits for the
// bus.
func (d *Daemon) joinCluster(leader *lead.Host) (err error) {
	c := &d.config.Cluster
	if c.Name == "" || d.once && c.Acknowledge != config.Quorum {
		return nil
	}
	o := cluster.NodeOptions{
		Options:  leader.Bus(d.log.With("component", "cluster")),
		Members:  d.config.MembersFile(),
		Replicas: c.Replicas,
		Journal:  cluster.Source{Dir: filepath.Clean(d.state.Dir), Synced: d.state.Journal.Synced, Await: d.state.Journal.AwaitSynced},
		Epoch:    d.state.Booted.Epoch, Seen: d.seen,
	}
	if c.Acknowledge == config.Quorum && !d.once {
		o.Lease = time.Duration(c.Lease)
	}
	if d.cluster, err = cluster.Start(o); err == nil {
		d.state.Self.SeeCluster(d.cluster)
		if !d.once {
			d.state.Mailboxes().SeeKernels(d.cluster.Link())
			d.state.Processes.SeeKernels(d.cluster.Link())
		}
	}
	return err
}

// serveCluster starts to carry messages and calls between kernels, first those that the previous run left.
func (d *Daemon) serveCluster(members *keyed.Members, left cluster.Left) error {
	if d.cluster == nil || d.once {
		return nil
	}
<<<<<<< HEAD
	k := &abroad.Kernel{Shell: d.kernel, Members: members, Processes: d.state.Processes.Processes(), Tokens: d.state.Tokens}
	return d.cluster.Serve(k, d.state.Booted.Instance, d.state.MailEpoch(), left)
=======
	keys, err := leaderKeys(&d.config, key)
	if err != nil || c.Acknowledge != config.Quorum && len(keys) == 1 {
		return err
	}
	dialing, stop := context.WithTimeout(ctx, busPatience)
	defer stop()
	conn, js, err := cluster.Dial(dialing, cluster.Options{Name: c.Name, Servers: c.Bus, Authority: c.Authority, Key: key, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		d.log.Warn("the journal is not compared with the bus at this start", "error", err)
		return nil
	}
	defer conn.Close()
	if c.Acknowledge != config.Quorum {
		last, err := cluster.LastKey(ctx, js, c.Name)
		if err != nil {
			d.log.Warn("the journal is not compared with the bus at this start", "error", err)
			return nil
		}
		if last == key.Key().String() || !slices.ContainsFunc(keys, func(k access.PublicKey) bool { return k.String() == last }) {
			return nil
		}
	}
	err = d.rejoinWith(ctx, js, keys)
	if errors.Is(err, fault.ClusterBus) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		d.log.Warn("the journal is not compared with the bus at this start", "error", err)
		return nil
	}
	return err
}

// rejoinWith makes the journal end as the stream does, or later.
func (d *Daemon) rejoinWith(ctx context.Context, js cluster.Streams, keys []access.PublicKey) error {
	done, err := cluster.Rejoin(ctx, js, d.config.Cluster.Name, keys, filepath.Join(d.config.StateDir, "journal"))
	if done.Aside != "" {
		d.log.Error("entries of the journal that the bus does not have were set aside", "first", done.First, "last", done.Last, "directory", done.Aside)
	}
	if err == nil && done.Fetched > 0 {
		d.log.Warn("entries were fetched from the bus, which the journal did not have", "entries", done.Fetched)
	}
	return err
}

// leaderKeys returns the keys of the hosts that may lead the kernel: this one's, and those that the members file names.
func leaderKeys(cfg *config.Config, key *access.HostKey) ([]access.PublicKey, error) {
	members := cluster.NewMembers(cfg.MembersFile())
	keys, err := members.Keys(cfg.Cluster.Name)
	if err = errors.Join(err, members.Close()); err != nil {
		return nil, err
	}
	if !slices.Contains(keys, key.Key()) {
		keys = append(keys, key.Key())
	}
	return keys, nil
}

// deposed returns an error if another host leads the kernel, as its record says. A standby never begins a record, nor does a host
// whose key is not among those that the members file has for the kernel.
func (d *Daemon) deposed(key *access.HostKey) error {
	last, name := d.state.Self.Booted(), d.config.Cluster.Name
	if name == "" || last != nil && last.HostKey == key.Public() {
		return nil
	}
	if last == nil {
		members := cluster.NewMembers(d.config.MembersFile())
		list, _, err := members.List()
		own := slices.IndexFunc(list, func(k *access.AuthorizedKey) bool { return k.Kernel == name && k.Key == key.Key() })
		others := slices.ContainsFunc(list, func(k *access.AuthorizedKey) bool { return k.Kernel == name && k.Key != key.Key() })
		switch {
		case own >= 0 && list[own].Standby:
			err = errors.Join(err, fault.ClusterFenced.New("this host may lead the kernel %s only in place of another one, and has no record of it: run \"pwos cluster takeover %s\"", name, name).With("kernel", name))
		case own < 0 && others:
			err = errors.Join(err, fault.ClusterFenced.New("the state directory %s has no record of the kernel %s, and the members file %s has other keys for it than %s: "+
				"start the kernel with the directory that has the record, or, if that is lost, add the line that \"pwos cluster key --standby\" prints, and run \"pwos cluster takeover %s\"",
				d.config.StateDir, name, d.config.MembersFile(), key.Key().Fingerprint(), name).With("kernel", name))
		}
		return errors.Join(err, members.Close())
	}
	keys, err := leaderKeys(&d.config, key)
	if err != nil {
		return err
	}
	leader, _, fail := access.ParsePublicKey(last.HostKey)
	if fail != nil || !slices.Contains(keys, leader) {
		return nil // then it is a copy
	}
	return fault.ClusterFenced.New("another host leads the kernel %s, with the key %s in epoch %d: to lead here, run \"pwos cluster takeover %s\"",
		name, leader.Fingerprint(), last.Epoch, name).With("kernel", name)
>>>>>>> w/upgrade2
}

// quorum returns what makes answers wait for a majority of the bus; nil if they do not. An entry waits up to four fifths of
// the lease, after which another kernel may lead.
func (d *Daemon) quorum() *actors.Quorum {
	if d.cluster == nil || d.config.Cluster.Acknowledge != config.Quorum {
		return nil
	}
	q := &actors.Quorum{Patience: cluster.SelfFence(time.Duration(d.config.Cluster.Lease))}
	if !d.once {
		q.Leads = d.cluster.Leads
	}
	return q
}

// copyJournal starts to copy the journal to the bus.
func (d *Daemon) copyJournal() {
	told := &cluster.Quorum{Fenced: d.kernel.Fence}
	if d.quorum() != nil {
		told.Acknowledged, told.Lease = d.kernel.Acknowledge, d.kernel.Lead
	}
	d.cluster.Begin(told)
}
