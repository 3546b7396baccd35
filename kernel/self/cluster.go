package self

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Cluster is what the shell knows of other kernels. Its methods are safe for concurrent use.
type Cluster interface {
	Status() schema.ClusterStatusOutput
}

// SeeCluster sets what Cluster.Status answers. Call it before the domain decides anything.
func (d *Domain) SeeCluster(c Cluster) { d.cluster = c }

func (d *Domain) clusterStatus(*kernel.Call, *schema.ClusterStatusInput) (schema.ClusterStatusOutput, error) {
	if d.cluster == nil {
		return schema.ClusterStatusOutput{}, fault.ClusterOff.New("this kernel is in no cluster: set cluster.name and cluster.bus in its configuration")
	}
	return d.cluster.Status(), nil
}
