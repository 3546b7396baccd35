package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/approval"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/crypto"
	"github.com/promptware-os/pwos/kernel/delta"
	"github.com/promptware-os/pwos/kernel/http"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/kernel/job"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/kernel/rewind"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// parts is a kernel that the test assembles like the daemon, for what the daemon cannot do: a connection of an agent
// without a login, and a disk that fails.
type parts struct {
	running
	t       *testing.T
	place   string // of the journal
	kernel  *actors.Kernel
	files   *faultfs.Failing
	servers []func()

	processes *process.Domain
	tokens    *capability.Registry
}

// keyless is a kernel's identity without a key.
type keyless struct{}

func (keyless) Sealer() (crypto.Sealer, error) {
	return nil, fault.WireInvalidInput.New("there is no key")
}

func assemble(t *testing.T) *parts {
	t.Helper()
	dir := testkit.Dir(t)
	place := filepath.Join(dir, "journal")
	p := &parts{t: t, place: place, running: running{cfg: config.Config{RuntimeDir: dir}}, files: faultfs.NewFailing(journal.OSFS{}, faultfs.Fault{})}
	log, _, err := journal.Open(journal.Options{Dir: place, FS: p.files})
	testkit.Must(t, err)
	processes := process.New([]string{"gpu"})
	view := processes.Processes()
	tokens := capability.New([]string{"gpu"}, view)
	ledger, err := resource.New(map[string]float64{"gpu": 8}, tokens, view)
	testkit.Must(t, err)
	keyed, err := memory.New(schema.Value(`{}`), view)
	testkit.Must(t, err)
	p.processes, p.tokens = processes, tokens
	p.kernel = actors.New(actors.Config{
		Domains: map[schema.Domain]kernel.Domain{
			schema.Kernel: self.New(nil), schema.Process: processes, schema.Capability: tokens, schema.Resource: ledger,
			schema.Memory: keyed, schema.Delta: delta.New(view), schema.Ipc: ipc.New(ipc.Options{Capacity: 50, Processes: view}),
			schema.Job: job.New(nil), schema.Budget: budget.NewDomain(budget.New(), view), schema.Approval: approval.New(view), schema.Rewind: rewind.New(view), schema.StepDomain: step.New(view),
			schema.Crypto: crypto.New(keyless{}, nil), schema.Http: http.New(func(*kernel.Call, *schema.HTTPFetchInput) *fault.Fault { return nil }),
		},
		Tokens: tokens, Processes: view, Journal: log, Dir: place, Keys: idempotency.New(),
		Origin: "https://test.local/", Log: slog.New(slog.DiscardHandler), Restore: p.restore,
	})
	t.Cleanup(func() {
		for _, stop := range p.servers {
			stop()
		}
		if err := errors.Join(p.kernel.Close(), log.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func (p *parts) restore(name schema.Domain, d kernel.Domain) error {
	d.Reset()
	r := journal.NewReader(p.files, p.place, journal.ReaderOptions{})
	err := record.Replay(context.Background(), r, map[schema.Domain]kernel.Domain{name: d}, nil, func(*kernel.Call) {})
	return errors.Join(err, r.Close())
}

// connect opens a socket whose connections belong to pid, and dials it.
func (p *parts) connect(pid int64) *client {
	p.t.Helper()
	socket := fmt.Sprintf("%d-%d.sock", pid, len(p.servers))
	listener, err := net.Listen("unix", filepath.Join(p.cfg.RuntimeDir, socket))
	testkit.Must(p.t, err)
	server := unixsock.NewServer(unixsock.ServerConfig{
		Endpoints: []unixsock.Endpoint{{Listener: listener, Dialect: schema.OsMessage, MaxLine: schema.MaxLine}},
		Handler: func(ctx context.Context, conn *unixsock.Conn, _ access.Peer, done func()) {
			interrupted := make(chan struct{})
			stop := context.AfterFunc(ctx, func() { defer close(interrupted); conn.Interrupt() })
			p.kernel.Serve(conn.Link(), kernel.Caller{PID: pid, Conn: socket}, func() {
				if !stop() {
					<-interrupted
				}
				done()
			})
		},
	})
	var served sync.WaitGroup
	served.Go(func() {
		if err := server.Serve(context.Background()); err != nil {
			p.t.Errorf("serve: %v", err)
		}
	})
	p.servers = append(p.servers, func() {
		if err := server.Shutdown(context.Background()); err != nil {
			p.t.Errorf("shut down: %v", err)
		}
		served.Wait()
	})
	return p.dialOn(p.t, socket)
}
