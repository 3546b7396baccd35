package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/schema/fault"
)

// BusNode is a node of the bus, as the nodes that lead the streams see it.
type BusNode struct {
	Name    string
	Streams int    // that it has a replica of
	Leads   int    // how many of those it leads
	Behind  uint64 // writes that its replicas lack
	Away    bool   // another node does not reach it
}

// Current reports whether the node has everything: another one may end.
func (n *BusNode) Current() bool { return !n.Away && n.Behind == 0 }

// Nodes returns the nodes that have the streams and leases of these kernels, by name. A stream that no majority of its nodes has is an error
// (fault.ClusterBus); one that was never made is left out.
func Nodes(ctx context.Context, js jetstream.JetStream, kernels []string) ([]BusNode, error) {
	nodes := make(map[string]*BusNode)
	at := func(name string) *BusNode {
		if nodes[name] == nil {
			nodes[name] = &BusNode{Name: name}
		}
		nodes[name].Streams++
		return nodes[name]
	}
	for _, kernel := range kernels {
		for _, name := range []string{Stream(kernel), "KV_" + LeaseBucket(kernel)} {
			stream, err := js.Stream(ctx, name)
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				continue
			}
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				return nil, fault.ClusterBus.New("the stream %s does not answer: fewer than a majority of its nodes run, or they elect a leader", name)
			}
			if err != nil {
				return nil, busFault("look at stream "+name, err)
			}
			info := stream.CachedInfo().Cluster
			if info == nil || info.Leader == "" {
				return nil, fault.ClusterBus.New("no node leads the stream %s: fewer than a majority of its nodes run, or they elect a leader", name)
			}
			at(info.Leader).Leads++
			for _, replica := range info.Replicas {
				n := at(replica.Name)
				n.Away = n.Away || replica.Offline
				n.Behind += replica.Lag
				if !replica.Current {
					n.Behind = max(n.Behind, 1)
				}
			}
		}
	}
	all := make([]BusNode, 0, len(nodes))
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		all = append(all, *nodes[name])
	}
	return all, nil
}
