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
	log := d.state.Journal
	o := cluster.NodeOptions{
		Options:  leader.Bus(d.log.With("component", "cluster")),
		Members:  d.config.MembersFile(),
		Replicas: c.Replicas,
		Unsynced: c.AcceptUnsynced,
		Journal:  cluster.Source{Dir: filepath.Clean(d.state.Dir), Synced: log.Synced, Last: log.Synced, Await: log.AwaitSynced},
		Epoch:    d.state.Booted.Epoch, Seen: d.seen,
	}
	if c.Acknowledge == config.Quorum {
		o.Journal.Last, o.Journal.Await = log.Syncing, log.AwaitSyncing
		if !d.once {
			o.Lease = time.Duration(c.Lease)
		}
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
	k := &abroad.Kernel{Shell: d.kernel, Members: members, Processes: d.state.Processes.Processes(), Tokens: d.state.Tokens, Variables: d.variables}
	return d.cluster.Serve(k, d.state.Booted.Instance, d.state.MailEpoch(), left)
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
