package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// mostNames bounds the names of processes that are kept of another kernel.
const mostNames = 1 << 16

// kernels are the kernel that the page is of, and others of its cluster, which are asked through it.
type kernels struct {
	own *kernel

	mu     sync.Mutex
	others map[string]*kernel // those that were asked
}

func newKernels(dial func(context.Context) (*client.Client, error)) *kernels {
	return &kernels{own: &kernel{dial: dial}, others: make(map[string]*kernel)}
}

func (k *kernels) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.own.close()
	for _, other := range k.others {
		other.close()
	}
}

// at returns the kernel that a request names, the own one if it names none.
func (k *kernels) at(r *http.Request) (*kernel, error) {
	name := r.URL.Query().Get("kernel")
	if name == "" {
		return k.own, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if other := k.others[name]; other != nil {
		return other, nil
	}
	status, err := k.status(r.Context())
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(status.Members, func(m schema.ClusterMember) bool { return m.Name == name }) {
		return nil, wrongInput(fmt.Sprintf("no kernel of the cluster has the name %.40q", name))
	}
	other := &kernel{dial: k.own.dial, name: name, as: "kernel-" + status.Name}
	k.others[name] = other
	return other, nil
}

// status is that of the own kernel in its cluster, empty if it is in none.
func (k *kernels) status(ctx context.Context) (*schema.ClusterStatusOutput, error) {
	status, err := ask(ctx, k.own, &k.own.quick, schema.ClusterStatus, &schema.ClusterStatusInput{})
	if errors.Is(err, fault.ClusterOff) || errors.Is(err, fault.Forbidden) || errors.Is(err, fault.WireUnknownSyscall) {
		return new(schema.ClusterStatusOutput), nil
	}
	return status, err
}

// list is GET /api/kernels: the name of the own kernel, and those of the others of its cluster.
func (k *kernels) list(w http.ResponseWriter, r *http.Request) {
	status, err := k.status(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	others := []byte{'['}
	for i := range status.Members {
		if i > 0 {
			others = append(others, ',')
		}
		others = schema.AppendString(others, status.Members[i].Name)
	}
	answer(w, view.Object(nil).Text("own", status.Name).Raw("others", append(others, ']')).Close())
}

// names asks for the names of the processes. A kernel that does not show them leaves PIDs.
func (k *kernel) names(ctx context.Context) (view.Names, error) {
	processes, err := k.list(ctx)
	if err != nil && (k.name == "" || !errors.Is(err, fault.Forbidden)) {
		return nil, err
	}
	names := make(view.Names, len(processes))
	for i := range processes {
		names[processes[i].PID] = processes[i].AgentID
	}
	return names, nil
}

// namesOf are the names for entries. Those of another kernel are asked for once, and again when a process comes that has none:
// each question is an entry of both records. seq is that of the question that was answered with the entries: where the kernel shows no
// names, the process of an earlier question is known to be that of the own kernel.
func (k *kernel) namesOf(ctx context.Context, entries []view.Entry, seq int64) (view.Names, error) {
	if k.name == "" {
		return k.names(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	missing := k.known == nil || len(k.known) > mostNames
	for i := range entries {
		_, known := k.known[entries[i].PID]
		missing = missing || !known && entries[i].PID != 0
	}
	if missing {
		names, err := k.names(ctx)
		if err != nil {
			return nil, err
		}
		k.known = names
	}
	earlier := k.asked
	k.asked = seq
	for i := range entries {
		if e := &entries[i]; e.Seq == earlier && e.PID != 0 {
			k.known[e.PID] = k.as
		}
		k.known.Learn(&entries[i].AuditEntry)
		if _, known := k.known[entries[i].PID]; !known {
			k.known[entries[i].PID] = "" // it has ended, and is not asked for again
		}
	}
	return maps.Clone(k.known), nil
}
