package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
)

// Node is a kernel as a part of its cluster.
type Node struct {
	Options
	members *Members
	source  Source
	conn    *nats.Conn
	copy    *Copy
	link    *Link
	lease   *Lease // nil: no answer waits for the bus
	quorum  bool
	end     context.CancelFunc
	running sync.WaitGroup
}

// NodeOptions are what a Node needs of its kernel.
type NodeOptions struct {
	Options
	Members  string // file
	Journal  Source
	Replicas int
	Unsynced bool // the operator accepts a bus that does not sync

	Lease time.Duration // the term of the lease; 0: none is kept
	Epoch int64         // of the record
	Seen  Seen          // the lease of the previous leader, as this host read it as its standby
}

// Start joins the bus. It does not wait for the bus. Begin starts the copy.
func Start(o NodeOptions) (*Node, error) {
	n := &Node{Options: o.Options, members: NewMembers(o.Members), source: o.Journal}
	list, refused, err := n.members.List()
	if err != nil {
		return nil, err
	}
	for _, line := range shown(refused) {
		n.Log.Warn("members file: " + line)
	}
	n.Log.Info("in a cluster", "name", n.Name, "members", len(list), "key", n.Key.Key().Fingerprint())
	if n.conn, err = Connect(o.Options); err != nil {
		return nil, err
	}
	if n.copy, err = NewCopy(n.Name, n.Key, o.Journal, o.Replicas, n.conn, n.Log); err != nil {
		n.conn.Close()
		return nil, err
	}
	n.copy.unsynced = o.Unsynced
	if o.Lease > 0 {
		options := LeaseOptions{Kernel: n.Name, Replicas: o.Replicas, Term: o.Lease, Clock: BootClock}
		n.lease = NewLease(n.copy.stream, options, n.Key.Key().Fingerprint(), o.Epoch, o.Seen, n.hasStandbys)
	}
	n.copy.leaders = func() []access.PublicKey {
		keys, err := n.members.Keys(n.Name)
		if err != nil {
			n.Log.Warn("members file", "error", err)
		}
		return keys
	}
	n.link = newLink(o.Options, n.members, n.conn, n.answers)
	n.end = func() {}
	return n, nil
}

// Begin starts to copy the journal, until Close.
func (n *Node) Begin(told *Quorum) {
	if n == nil {
		return
	}
	n.quorum = told.Acknowledged != nil
	n.copy.Tell(told)
	ctx, end := context.WithCancel(context.Background())
	n.end = end
	n.running.Go(func() { n.copy.Run(ctx) })
	if n.lease != nil {
		n.running.Go(func() { n.lease.Run(ctx, n.copy.leads) })
	}
}

// Leads reports whether no other host can lead the kernel at present.
func (n *Node) Leads() bool { return n.lease.Held() }

// answers reports whether this host may speak for the kernel to others. Another one leads it, or may, once the lease has
// ended, or once the stream has entries that the journal does not have.
func (n *Node) answers() bool {
	return (n.lease == nil || n.lease.Held()) && n.copy.Progress().Alarm == ""
}

// hasStandbys reports whether the members file names other hosts that may lead this kernel. It is true if the file cannot
// be read.
func (n *Node) hasStandbys() bool {
	keys, err := n.members.Keys(n.Name)
	return err != nil || slices.ContainsFunc(keys, func(key access.PublicKey) bool { return key != n.Key.Key() })
}

// Silence ends the reports of the copy's progress, before the kernel closes.
func (n *Node) Silence() {
	if n != nil {
		n.copy.Tell(nil)
	}
}

// Serve starts to carry messages between this kernel and others, until Hush. It first sends the unfinished work of the
// previous run. instance identifies the kernel's state directory, and epoch is that of its journal; both number its
// messages.
func (n *Node) Serve(k Kernel, instance string, epoch int64, left Left) error {
	return n.link.start(k, instance, epoch, left)
}

// Ask makes a query at another kernel. It returns the answer, and the query's entry in the journal there.
func (n *Node) Ask(ctx context.Context, kernel, typ string, data []byte) (answer schema.Value, seq int64, err error) {
	return n.link.Ask(ctx, kernel, typ, data)
}

// Link returns the link to other kernels.
func (n *Node) Link() *Link { return n.link }

// Hush ends what Serve started: afterwards no call is made to the kernel. It may be called more than once.
func (n *Node) Hush() {
	if n != nil {
		n.link.close()
	}
}

// Close leaves the bus, and returns when all goroutines of the node have ended. It does nothing on a nil Node.
func (n *Node) Close() error {
	if n == nil {
		return nil
	}
	n.link.close()
	n.end()
	n.running.Wait()
	n.release()
	n.conn.Close()
	return n.members.Close()
}

// release releases the lease, if the bus is reached, so that the next leader need not wait for its term.
func (n *Node) release() {
	if n.lease == nil || !n.conn.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), copyWait)
	defer cancel()
	if err := n.lease.Release(ctx); err != nil {
		n.Log.Debug("lease", "error", err)
	}
}

// copyWait is how long a kernel waits for its copy.
const copyWait = 2 * time.Second

// Copied waits until the bus has an entry, while the bus is reached, for up to copyWait and until ctx ends. It returns the
// last entry that the bus has; 0 without a copy, as in a process that makes one call.
func (n *Node) Copied(ctx context.Context, entry uint64) uint64 {
	if n == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, copyWait)
	defer cancel()
	for {
		p := n.copy.Progress()
		if p.Copied >= entry || p.Alarm != "" || !n.conn.IsConnected() || !sleep(ctx, linger/4) {
			return p.Copied
		}
	}
}

// Drain waits until the bus has the whole journal, which no longer grows, as Copied does. The next start copies the rest.
func (n *Node) Drain(ctx context.Context) {
	if n != nil {
		n.Copied(ctx, n.source.Synced())
	}
}

// maxMembers is how many members Status names, so that the answer fits a line.
const maxMembers = 64

// Status returns the answer of Cluster.Status.
func (n *Node) Status() schema.ClusterStatusOutput {
	progress, synced, acknowledge := n.copy.Progress(), n.source.Synced(), "disk"
	if n.quorum {
		acknowledge = "quorum"
	}
	out := schema.ClusterStatusOutput{
		Name: n.Name, Bus: n.Servers, Connected: n.conn.IsConnected(), Node: n.conn.ConnectedServerName(), Acknowledge: acknowledge,
		Synced: int64(synced), Copied: int64(progress.Copied), Behind: int64(synced - min(synced, progress.Copied)), Alarm: progress.Alarm,
		Trouble: progress.Wrong, Members: []schema.ClusterMember{},
	}
	list, refused, err := n.members.List()
	if err != nil {
		out.Trouble = err.Error()
	}
	for _, k := range list {
		if k.Kernel == n.Name && k.Key != n.Key.Key() {
			out.Standbys = append(out.Standbys, k.Key.Fingerprint())
		}
	}
	out.Refused = shown(refused[:min(len(refused), maxMembers)])
	if n.lease != nil && len(out.Standbys) > 0 {
		if out.Lease = "lost"; n.lease.Held() {
			out.Lease = "held"
		}
	}
	for _, k := range list[:min(len(list), maxMembers)] {
		if k.Kernel == n.Name || k.Standby {
			continue
		}
		queued, trouble := n.link.queued(k.Kernel)
		out.Members = append(out.Members, schema.ClusterMember{
			Name: k.Kernel, Key: k.Key.Fingerprint(), Allow: append([]string{}, k.Agent.Allow...), Role: k.Role,
			Queued: queued, Trouble: trouble,
		})
	}
	return out
}

// Queue lists the messages to other kernels that have no outcome.
func (n *Node) Queue() schema.ClusterQueueOutput { return n.link.queue() }

// Warnings returns what the operator should look at.
func (n *Node) Warnings() (all []string) {
	if n == nil {
		return nil
	}
	if alarm := n.copy.Progress().Alarm; alarm != "" {
		all = append(all, fmt.Sprintf("the copy of the journal on the bus has stopped: %s", alarm))
	}
	return slices.Clip(all)
}
