package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/effect/vault"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/journal"
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
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/kernel/network"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/sshauth"
	"github.com/promptware-os/pwos/uri"
)

// state is the kernel's state as the journal has it: what a start makes, and what a running kernel makes anew when its
// journal has lost what a domain had applied.
type state struct {
	dir     string // the journal's
	log     *slog.Logger
	means   host.Means // to confine programs with
	journal *journal.Log

	pools     []string // names of the resources, ascending
	domains   map[schema.Domain]kernel.Domain
	processes *process.Domain
	tokens    *capability.Registry
	ledger    *resource.Ledger
	jobs      *job.Domain
	approvals *approval.Domain
	mailboxes *ipc.Domain
	memory    *memory.Domain

	keys      *idempotency.Keys
	metrics   *metrics.Metrics
	budgets   *budget.Ledger
	tick      int64
	replayed  uint64       // entries that were read to make the state
	store     *projections // nil where it cannot be had
	snapshots *actors.Snapshots
	made      uint64     // the entry that every snapshot is of, 0 where they differ
	seal      *vault.Key // what the kernel seals with

	host *sshauth.HostKey // nil where none is used
	self *self.Domain
	web  *fetch.Runner

	booted schema.BootedInput // this start

	space *uri.Space   // what can be named
	tree  *rootfs.Tree // the files of it
}

// openState opens the journal and replays it. key signs the journal's head; nil: nothing is signed.
func openState(ctx context.Context, cfg *config.Config, key *sshauth.HostKey, means host.Means, log *slog.Logger) (s *state, err error) {
	made := &state{means: means, dir: filepath.Join(cfg.StateDir, "journal"), log: log, host: key, keys: idempotency.New(), metrics: metrics.New(), budgets: budget.New()}
	s = made // which a failure takes back
	s.journal, err = s.openJournal(key)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.close())
		}
	}()
	s.openProjections(cfg)
	if s.space, s.tree, err = openRoot(cfg); err != nil {
		return nil, err
	}
	if err := s.makeDomains(cfg); err != nil {
		return nil, err
	}
	return s, s.replay(ctx)
}

func (s *state) openJournal(key *sshauth.HostKey) (*journal.Log, error) {
	options := journal.Options{
		Dir: s.dir, ReserveBytes: journal.DefaultReserveBytes,
		Trouble: func(err error) { s.log.Warn("journal trouble", "error", err) },
	}
	if key != nil {
		options.Signer = key
	}
	j, recovery, err := journal.Open(options)
	if err != nil {
		return nil, err
	}
	switch cut := recovery.Cut; {
	case cut == nil:
	case cut.Answered:
		s.log.Error("journal ended in a torn line that had been whole on disk: it was cut off; that call was answered and is lost: "+
			"look at the disk, and compare with a copy", "file", filepath.Base(cut.File), "bytes", cut.Bytes, "after", cut.After)
	default:
		s.log.Warn("journal ended in a write that never finished: it was cut off; nobody had been told that it was done",
			"file", filepath.Base(cut.File), "bytes", cut.Bytes, "after", cut.After)
	}
	for _, note := range recovery.Notes {
		s.log.Warn("journal recovery", "note", note)
	}
	return j, nil
}

// makeDomains makes the state machines, empty, with the views that they have of each other.
func (s *state) makeDomains(cfg *config.Config) error {
	pools := make([]string, 0, len(cfg.Resources))
	for name := range cfg.Resources {
		pools = append(pools, name)
	}
	slices.Sort(pools)
	s.pools = pools
	s.processes = process.New(pools)
	view := s.processes.Processes()
	s.self = self.New(names{s.space, view})
	s.tokens = capability.New(pools, view)
	s.tokens.See(s.self.Registry())
	s.processes.See(s.tokens, s.self.Registry(), s.budgets)
	s.mailboxes = ipc.New(ipc.Options{Capacity: cfg.Ipc.Mailbox, Rules: governance(cfg.Ipc.Deny), Processes: view})
	var err error
	if s.ledger, err = resource.New(cfg.Resources, s.tokens, view); err != nil {
		return err
	}
	parameters, err := schema.Marshal(&parameterBlock{
		Root: cfg.Root, Origin: cfg.Origin, Init: cfg.Init, Mounts: cfg.Mounts, Version: Version(), Sync: string(cfg.Journal.Sync),
		Resources: cfg.Resources, Sandbox: s.means.Level(), Gaps: s.means.Gaps(),
	})
	if err != nil {
		return err
	}
	if s.memory, err = memory.New(parameters, view); err != nil {
		return err
	}
	fetcher, err := newFetcher(&cfg.HTTP)
	if err != nil {
		return err
	}
	s.seal = vault.NewKey(cfg.Crypto.Identity, cfg.Crypto.AgentSocket, s.log)
	s.web = &fetch.Runner{Fetcher: fetcher, Open: s.seal.Open, Log: s.log.With("component", "http")}
	s.ledger.See(s.self.Registry())
	s.jobs = job.New(s.self.Registry())
	s.approvals = approval.New(view)
	s.domains = map[schema.Domain]kernel.Domain{
		schema.Kernel: s.self, schema.Process: s.processes, schema.Capability: s.tokens, schema.Resource: s.ledger,
		schema.Memory: s.memory, schema.Delta: delta.New(view), schema.Ipc: s.mailboxes,
		schema.Crypto: crypto.New(s.seal), schema.Http: http.New(s.web.Check),
		schema.Net: network.New(egress.Admits), schema.Job: s.jobs, schema.Budget: budget.NewDomain(s.budgets, view),
		schema.Approval: s.approvals,
	}
	return nil
}

func governance(deny []config.Deny) []ipc.Rule {
	rules := make([]ipc.Rule, len(deny))
	for i, d := range deny {
		rules[i] = ipc.Rule{Intent: d.Intent, SenderPID: d.SenderPID, ReceiverPID: d.ReceiverPID}
	}
	return rules
}

// parameterBlock is proc/cmdline (ABI 5): where everything in the kernel has root and origin from.
type parameterBlock struct {
	Root    string            `json:"root,omitzero"`   // absent: there is none
	Origin  string            `json:"origin"`          // in its normal form
	Init    string            `json:"init,omitzero"`   // name of what is to be ingested first
	Mounts  map[string]string `json:"mounts,omitzero"` // by prefix
	Version string            `json:"version"`         // of the kernel
	Sync    string            `json:"sync"`
	// Resources are the pools that there are, with their capacity.
	Resources map[string]float64 `json:"resources,omitzero"`
	Sandbox   string             `json:"sandbox"` // what a default sandbox enforces here; none: nothing
	// Gaps is what it does not keep a program from.
	Gaps []string `json:"sandbox_gaps"`
}

// orphans are the commands that take away what a crash has left to processes that are not alive, and what the life before
// had left to its connections.
func (s *state) orphans() []schema.Request {
	dead := process.Orphans(s.processes.Alive, s.tokens.Holders(), s.ledger.Holders(), s.mailboxes.Mailboxes())
	return append(dead, s.mailboxes.Abandoned()...)
}

// close lets the projections go, syncs the journal and signs its head.
func (s *state) close() error {
	if err := s.store.close(); err != nil { // which costs a replay and no more
		s.log.Warn("close projections", "error", err)
	}
	if s.seal != nil {
		s.seal.Close()
	}
	if s.tree != nil {
		if err := s.tree.Close(); err != nil { // it was only read
			s.log.Warn("close root", "error", err)
		}
	}
	if err := s.journal.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}
