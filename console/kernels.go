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

// mostNames bounds the number of process names that are cached for another kernel.
const mostNames = 1 << 16

// kernels has the server's own kernel and the other kernels of its cluster. Calls of another kernel go through the own kernel.
type kernels struct {
	own *kernel

	mu     sync.Mutex
	others map[string]*kernel // those that requests have named so far, by name
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

// at returns the kernel that the query parameter kernel names, the own kernel if there is none. It returns a wrongInput error if the
// cluster has no kernel of that name.
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

// status returns the own kernel's status of the cluster. The status is empty if the kernel is in no cluster or does not show it.
func (k *kernels) status(ctx context.Context) (*schema.ClusterStatusOutput, error) {
	status, err := ask(ctx, k.own, &k.own.quick, schema.ClusterStatus, &schema.ClusterStatusInput{})
	if errors.Is(err, fault.ClusterOff) || errors.Is(err, fault.Forbidden) || errors.Is(err, fault.WireUnknownSyscall) {
		return new(schema.ClusterStatusOutput), nil
	}
	return status, err
}

// list handles GET /api/kernels: the name of the own kernel, and the names of the other kernels of its cluster.
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

// names returns the names of the processes, by PID. It returns no names if another kernel refuses to list its processes.
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

// namesOf returns the process names for entries. The names of another kernel are cached and read again only for an unknown PID,
// because each call adds an entry to the records of both kernels. seq is the entry of the call that returned the entries. The PID of
// the entry of the previous call is the process of the own kernel there, even if the other kernel does not list its processes.
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
			k.known[entries[i].PID] = "" // the process has ended: do not ask for its name again
		}
	}
	return maps.Clone(k.known), nil
}
