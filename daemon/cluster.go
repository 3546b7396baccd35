package daemon

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema/fault"
)

// joinCluster joins the configuration's cluster; without one nothing of it runs. A single call joins only if its answer waits
// for the bus.
func (d *Daemon) joinCluster(key *access.HostKey) (err error) {
	c := &d.config.Cluster
	if c.Name == "" || d.once && c.Acknowledge != config.Quorum {
		return nil
	}
	d.cluster, err = cluster.Start(cluster.NodeOptions{
		Options:  cluster.Options{Name: c.Name, Servers: c.Bus, Authority: c.Authority, Key: key, Log: d.log.With("component", "cluster")},
		Members:  d.config.MembersFile(),
		Replicas: c.Replicas,
		Journal:  cluster.Source{Dir: filepath.Clean(d.state.Dir), Synced: d.state.Journal.Synced, Await: d.state.Journal.AwaitSynced},
	})
	if err == nil {
		d.state.Self.SeeCluster(d.cluster)
		if !d.once {
			d.state.Mailboxes().SeeKernels(d.cluster.Link())
			d.state.Processes.SeeKernels(d.cluster.Link())
		}
	}
	return err
}

// busPatience is how long a start waits for the bus to compare its journal with.
const busPatience = 5 * time.Second

// rejoin compares the journal with its stream before anything is made of it, if answers wait for the bus. While the bus is
// away the kernel starts with what it has: until the bus is back, nothing of that is shown.
func (d *Daemon) rejoin(ctx context.Context, key *access.HostKey) (err error) {
	c := &d.config.Cluster
	if c.Name == "" || c.Acknowledge != config.Quorum {
		return nil
	}
	dialing, stop := context.WithTimeout(ctx, busPatience)
	defer stop()
	conn, js, err := cluster.Dial(dialing, cluster.Options{Name: c.Name, Servers: c.Bus, Authority: c.Authority, Key: key, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		d.log.Warn("the journal is not compared with the bus at this start", "error", err)
		return nil
	}
	defer conn.Close()
	done, err := cluster.Rejoin(ctx, js, c.Name, []access.PublicKey{key.Key()}, filepath.Join(d.config.StateDir, "journal"))
	if done.Aside != "" {
		d.log.Error("entries of the journal that the bus does not have were set aside: no majority had acknowledged them", "first", done.First, "last", done.Last, "directory", done.Aside)
	}
	if errors.Is(err, fault.ClusterBus) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		d.log.Warn("the journal is not compared with the bus at this start", "error", err)
		return nil
	}
	if err == nil && done.Fetched > 0 {
		d.log.Warn("entries were fetched from the bus, which the journal did not have", "entries", done.Fetched)
	}
	return err
}

// quorum says that answers wait for a majority of the bus; nil: they do not. An entry waits for four fifths of the lease, after
// which another kernel may lead.
func (d *Daemon) quorum() *actors.Quorum {
	if d.cluster == nil || d.config.Cluster.Acknowledge != config.Quorum {
		return nil
	}
	return &actors.Quorum{Patience: time.Duration(d.config.Cluster.Lease) / 5 * 4}
}

// copyJournal begins to copy the journal to the bus.
func (d *Daemon) copyJournal() {
	var answers *cluster.Quorum
	if d.quorum() != nil {
		answers = &cluster.Quorum{Acknowledged: d.kernel.Acknowledge, Fenced: d.kernel.Fence}
	}
	d.cluster.Begin(answers)
}
