package daemon

import (
	"path/filepath"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/daemon/config"
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
