// Package state rebuilds the kernel's state from the journal.
package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/promptware-os/pwos/access"
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
	"github.com/promptware-os/pwos/kernel/rewind"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/uri"
)

// State is the kernel's state. A start rebuilds it from the journal; a running kernel rebuilds it if its journal has lost
// entries that a domain had applied.
type State struct {
	Dir     string // the journal's
	Journal *journal.Log
	log     *slog.Logger
	means   host.Means         // to confine programs
	make    func(*State) error // creates empty domains

	Pools     []string // names of the resources, ascending
	Domains   map[schema.Domain]kernel.Domain
	Processes *process.Domain
	Tokens    *capability.Registry
	Jobs      *job.Domain
	Approvals *approval.Domain
	Memory    *memory.Domain
	Self      *self.Domain
	Rewind    *rewind.Domain
	Steps     *step.Domain
	ledger    *resource.Ledger
	mailboxes *ipc.Domain

	Keys        *idempotency.Keys
	Metrics     *metrics.Metrics
	Budgets     *budget.Ledger
	Tick        int64
	Replayed    uint64       // entries that were read to rebuild the state
	projections *projections // nil if it could not be opened
	Snapshots   *record.Snapshots
	Made        uint64 // the entry of every snapshot; 0 if they differ

	Seal    *vault.Key      // the kernel's sealing key
	HostKey *access.HostKey // nil: none
	// Variables seals with the host key; nil: there is none.
	Variables *access.Variables
	Web       *fetch.Runner
	Booted    schema.BootedInput // this start

	Space *uri.Space   // name space
	Tree  *rootfs.Tree // the files of it
}

// Mailboxes returns the domain of mailboxes. It must be called before the kernel owns the domains.
func (s *State) Mailboxes() *ipc.Domain { return s.mailboxes }

// Open opens the journal and replays it. key signs the journal's head; nil: nothing is signed.
func Open(ctx context.Context, cfg *config.Config, version string, key *access.HostKey, means host.Means, log *slog.Logger) (s *State, err error) {
	made := &State{
		means: means, Dir: filepath.Join(cfg.StateDir, "journal"), log: log, HostKey: key, Keys: idempotency.New(), Metrics: metrics.New(), Budgets: budget.New(),
	}
	s = made // closed again at a failure
	if key != nil {
		if s.Variables, err = access.NewVariables(ctx, key); err != nil {
			return nil, fmt.Errorf("use host key: %w", err)
		}
	}
	s.Journal, err = s.openJournal(key)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	s.openProjections(cfg)
	if s.Space, s.Tree, err = openRoot(cfg); err != nil {
		return nil, err
	}
	fetcher, err := Fetcher(&cfg.HTTP, version)
	if err != nil {
		return nil, err
	}
	s.Seal = vault.NewKey(cfg.Crypto.Identity, cfg.Crypto.AgentSocket, s.log)
	s.Web = &fetch.Runner{Fetcher: fetcher, Open: s.Seal.Open, Log: s.log.With("component", "http")}
	s.make = func(into *State) error { return into.makeDomains(cfg, version) }
	if err := s.make(s); err != nil {
		return nil, err
	}
	if err := s.replay(ctx); err != nil {
		return nil, err
	}
	s.followJournal()
	return s, nil
}

func (s *State) openJournal(key *access.HostKey) (*journal.Log, error) {
	options := journal.Options{
		Dir: s.Dir, ReserveBytes: journal.DefaultReserveBytes,
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
		s.log.Error("journal ended in a torn line that had been complete on disk: it was cut off; that call was answered and is lost: "+
			"check the disk, and compare with a copy", "file", filepath.Base(cut.File), "bytes", cut.Bytes, "after", cut.After)
	default:
		s.log.Warn("journal ended in an incomplete write: it was cut off; its call had not been answered",
			"file", filepath.Base(cut.File), "bytes", cut.Bytes, "after", cut.After)
	}
	for _, note := range recovery.Notes {
		s.log.Warn("journal recovery", "note", note)
	}
	return j, nil
}

// makeDomains creates the empty state machines, with their views of each other.
func (s *State) makeDomains(cfg *config.Config, version string) error {
	pools := make([]string, 0, len(cfg.Resources))
	for name := range cfg.Resources {
		pools = append(pools, name)
	}
	slices.Sort(pools)
	s.Pools = pools
	s.Processes = process.New(pools)
	view := s.Processes.Processes()
	s.Self = self.New(Names{s.Space, view})
	s.Tokens = capability.New(pools, view)
	s.Tokens.See(s.Self.Registry())
	s.Processes.See(s.Tokens, s.Self.Registry(), s.Budgets)
	s.mailboxes = ipc.New(ipc.Options{Capacity: cfg.Ipc.Mailbox, Rules: governance(cfg.Ipc.Deny), Processes: view})
	var err error
	if s.ledger, err = resource.New(cfg.Resources, s.Tokens, view); err != nil {
		return err
	}
	parameters, err := schema.Marshal(&parameterBlock{
		Root: cfg.Root, Origin: cfg.Origin, Init: cfg.Init, Mounts: cfg.Mounts, Version: version, Sync: string(cfg.Journal.Sync), Listen: cfg.Listen.TLS,
		Resources: cfg.Resources, Sandbox: s.means.Level(), Gaps: s.means.Gaps(),
	})
	if err != nil {
		return err
	}
	if s.Memory, err = memory.New(parameters, view); err != nil {
		return err
	}
	s.ledger.See(s.Self.Registry())
	s.Jobs = job.New(s.Self.Registry())
	s.Approvals = approval.New(view)
	s.Rewind = rewind.New(view)
	s.Steps = step.New(view)
	s.Domains = map[schema.Domain]kernel.Domain{
		schema.Kernel: s.Self, schema.Process: s.Processes, schema.Capability: s.Tokens, schema.Resource: s.ledger,
		schema.Memory: s.Memory, schema.Delta: delta.New(view), schema.Ipc: s.mailboxes,
		schema.Crypto: crypto.New(s.Seal, s.hostSealer()), schema.Http: http.New(s.Web.Check),
		schema.Net: network.New(egress.Admits), schema.Job: s.Jobs, schema.Budget: budget.NewDomain(s.Budgets, view),
		schema.Approval: s.Approvals, schema.Rewind: s.Rewind, schema.StepDomain: s.Steps,
	}
	return nil
}

// hostSealer returns what seals with the host key, nil if there is none.
func (s *State) hostSealer() crypto.Sealer {
	if s.Variables == nil {
		return nil
	}
	return s.Variables.Held()
}

func governance(deny []config.Deny) []ipc.Rule {
	rules := make([]ipc.Rule, len(deny))
	for i, d := range deny {
		rules[i] = ipc.Rule{Intent: d.Intent, SenderPID: d.SenderPID, ReceiverPID: d.ReceiverPID}
	}
	return rules
}

// parameterBlock is proc/cmdline (ABI 5), the only source of root and origin in the kernel.
type parameterBlock struct {
	Root    string            `json:"root,omitzero"`   // absent if there is none
	Origin  string            `json:"origin"`          // normalized
	Init    string            `json:"init,omitzero"`   // name to ingest first
	Mounts  map[string]string `json:"mounts,omitzero"` // by prefix
	Version string            `json:"version"`         // of the kernel
	Sync    string            `json:"sync"`
	Listen  string            `json:"listen,omitzero"` // address for clients on other machines
	// Resources has the capacities of the pools.
	Resources map[string]float64 `json:"resources,omitzero"`
	Sandbox   string             `json:"sandbox"` // what a default sandbox enforces on this machine; "": nothing
	// Gaps lists what the sandbox does not prevent.
	Gaps []string `json:"sandbox_gaps"`
}

// Orphans returns the commands that release what a crash left behind: resources of ended processes, and those of the
// previous run's connections.
func (s *State) Orphans() []schema.Request {
	dead := process.Orphans(s.Processes.Alive, s.Tokens.Holders(), s.ledger.Holders(), s.mailboxes.Mailboxes())
	return append(dead, s.mailboxes.Abandoned()...)
}

// Close closes the projections, syncs the journal and signs its head.
func (s *State) Close() error {
	if err := s.projections.close(); err != nil { // which only costs a replay
		s.log.Warn("close projections", "error", err)
	}
	if s.Seal != nil {
		s.Seal.Close()
	}
	if s.Tree != nil {
		if err := s.Tree.Close(); err != nil { // it was only read
			s.log.Warn("close root", "error", err)
		}
	}
	if err := s.Journal.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}
