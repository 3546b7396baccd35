package daemon

import (
	"path/filepath"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
)

// joinCluster begins what the configuration's cluster asks for; without one nothing of it runs.
func (d *Daemon) joinCluster(key *access.HostKey) (err error) {
	c := &d.config.Cluster
	if c.Name == "" || d.once {
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
