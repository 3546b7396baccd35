package authority_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/delta"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// config is the configuration of a kernel under test.
type config struct {
	pools   map[string]float64
	mailbox int // capacity of a mailbox
	breach  breach
}

// breach plants a fault in the kernel. Each function that is set replaces what the kernel uses.
type breach struct {
	tokens func(kernel.Tokens) kernel.Tokens
	domain func(schema.Domain, kernel.Domain) kernel.Domain
	frame  func([]byte) []byte // changes a line before it reaches the kernel
}

// domains are the kernel's domains, connected as in the daemon.
type domains struct {
	all       map[schema.Domain]kernel.Domain
	processes *process.Domain
	tokens    *capability.Registry
	ledger    *resource.Ledger
	mailboxes *ipc.Domain
}

func newDomains(cfg *config) (*domains, error) {
	d := &domains{}
	pools := slices.Sorted(maps.Keys(cfg.pools))
	d.processes = process.New(pools)
	view := d.processes.Processes()
	d.tokens = capability.New(pools, view)
	d.mailboxes = ipc.New(ipc.Options{Capacity: cfg.mailbox})
	var err error
	if d.ledger, err = resource.New(cfg.pools, d.tokens, view); err != nil {
		return nil, err
	}
	keyed, err := memory.New(schema.Value(`{}`), view)
	if err != nil {
		return nil, err
	}
	d.all = map[schema.Domain]kernel.Domain{
		schema.Kernel: self.New(nil), schema.Process: d.processes, schema.Capability: d.tokens, schema.Resource: d.ledger,
		schema.Memory: keyed, schema.Delta: delta.New(view), schema.Ipc: d.mailboxes,
	}
	return d, nil
}

// snapshot returns the whole state, each domain in its own format.
func (d *domains) snapshot() (map[schema.Domain][]byte, error) {
	state := make(map[schema.Domain][]byte, len(d.all))
	for name, domain := range d.all {
		var all []byte
		err := domain.Snapshot()(func(chunk []byte) error {
			all = append(append(all, chunk...), '\n')
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", name, err)
		}
		state[name] = all
	}
	return state, nil
}

// differ returns an error with the first domain whose state differs; nil if there is none.
func differ(a, b map[schema.Domain][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !bytes.Equal(a[name], b[name]) {
			return fmt.Errorf("state of %s: %s, then %s", name, a[name], b[name])
		}
	}
	return nil
}

// system is a kernel whose journal is on a disk in memory.
type system struct {
	cfg     *config
	kernel  *actors.Kernel
	journal *journal.Log
	disk    *faultfs.Disk
	live    *domains
	serving []*client
	conns   atomic.Int64
}

const journalDir = "/journal"

// boot starts a kernel on an empty disk. The caller must call shutDown.
func boot(cfg *config) (*system, error) {
	s := &system{cfg: cfg, disk: faultfs.NewDisk()}
	var err error
	if s.journal, _, err = journal.Open(journal.Options{Dir: journalDir, FS: s.disk}); err != nil {
		return nil, err
	}
	if s.live, err = newDomains(cfg); err != nil {
		return nil, errors.Join(err, s.journal.Close())
	}
	tokens, run := kernel.Tokens(s.live.tokens), maps.Clone(s.live.all)
	if cfg.breach.tokens != nil {
		tokens = cfg.breach.tokens(tokens)
	}
	if cfg.breach.domain != nil {
		for name, d := range run {
			run[name] = cfg.breach.domain(name, d)
		}
	}
	s.kernel = actors.New(actors.Config{
		Domains: run, Tokens: tokens, Processes: s.live.processes.Processes(),
		Journal: s.journal, Dir: journalDir, Keys: idempotency.New(), Origin: origin,
		Restore: func(schema.Domain, kernel.Domain) error { return errors.New("nothing here loses what was written") },
		Log:     slog.New(slog.DiscardHandler),
	})
	return s, nil
}

const origin = "https://test.local/"

// connect connects a client as pid. Calls of connect must not overlap.
func (s *system) connect(pid int64) *client {
	c := &client{link: newLink(), served: make(chan struct{}), frame: s.cfg.breach.frame}
	caller := kernel.Caller{PID: pid, Conn: "c-" + strconv.FormatInt(s.conns.Add(1), 10)}
	s.serving = append(s.serving, c)
	s.kernel.Serve(c.link, caller, func() { close(c.served) })
	return c
}

// shutDown ends all connections and the kernel. The journal stays on the disk.
func (s *system) shutDown() error {
	for _, c := range s.serving {
		c.link.finish()
	}
	for _, c := range s.serving {
		<-c.served
	}
	return errors.Join(s.kernel.Close(), s.journal.Close())
}

// replay rebuilds the state from the journal in new domains, and compares it with the live state. It calls seen as
// record.Replay does. The kernel must have been shut down.
func (s *system) replay(seen func(*kernel.Call)) (*domains, error) {
	fresh, err := newDomains(s.cfg)
	if err != nil {
		return nil, err
	}
	reader := journal.NewReader(s.disk, journalDir, journal.ReaderOptions{})
	err = record.Replay(context.Background(), reader, fresh.all, nil, seen)
	if err = errors.Join(err, reader.Close()); err != nil {
		return nil, err
	}
	live, err := s.live.snapshot()
	if err != nil {
		return nil, err
	}
	again, err := fresh.snapshot()
	if err != nil {
		return nil, err
	}
	if err := differ(live, again); err != nil {
		return nil, fmt.Errorf("replayed: %w", err)
	}
	return fresh, nil
}
