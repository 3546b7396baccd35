package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/cluster/abroad"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/effect/code"
	"github.com/promptware-os/pwos/effect/ingest"
	"github.com/promptware-os/pwos/effect/tool"
	"github.com/promptware-os/pwos/host/programs"
	"github.com/promptware-os/pwos/internal/rmtree"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// cachedModules is the number of compiled modules that are kept. A module compiled from a large language takes a few MB.
const cachedModules = 32

// promptware runs the effects of Kernel.Ingest, FileSystem.Hydrate and Syscall.Call with a path.
type promptware struct {
	ingests ingest.Runner
	tools   *tool.Runner
	code    *code.Workers
	trusted *access.Source // keys whose signatures of resources are accepted
	log     *slog.Logger
}

// newPromptware returns the runners of promptware. It needs the daemon's directories, and empties the scratch directory.
func newPromptware(cfg *config.Config, s *state.State, programs *programs.Programs, log *slog.Logger) (*promptware, error) {
	modules, err := tool.NewModules(cmp.Or(cfg.Tools.MemoryBytes, 64<<20), cachedModules)
	if err != nil {
		return nil, fmt.Errorf("make engine of modules: %w", err)
	}
	p := &promptware{
		ingests: ingest.Runner{Fetcher: s.Web, Pipeline: ingest.Pipeline{
			Space: s.Space, Files: s.Tree, Policy: ingest.Policy{Proof: cfg.Ingest.Proof, Unpinned: cfg.Ingest.Unpinned},
		}},
		trusted: access.NewSource(cfg.TrustedKeys(), time.Now),
		log:     log,
	}
	if cfg.TrustedKeys() != "" {
		p.ingests.Pipeline.Policy.Trusted = p.trusts
	}
	var run func() (*tool.Programs, error)
	scratch, hidden := filepath.Join(cfg.StateDir, "scratch"), private(*cfg)
	if cfg.Tools.Programs {
		run = func() (*tool.Programs, error) {
			host, err := programs.Host() // opened for the first program
			return &tool.Programs{Host: host, User: programs.User, Scratch: scratch, Private: hidden}, err
		}
	}
	p.code = &code.Workers{
		Host: programs.Host, User: programs.User, Scratch: scratch, Private: hidden, Log: log.With("component", "code"),
		Limits: code.Limits{Time: time.Duration(cfg.Code.Time), MemoryBytes: cfg.Code.MemoryBytes, OutputBytes: cfg.Code.OutputBytes},
	}
	p.tools = tool.NewRunner(tool.Caller{
		Space: s.Space, Files: s.Tree, Modules: modules,
		Limits: tool.Limits{Time: time.Duration(cfg.Tools.Time), OutputBytes: cfg.Tools.OutputBytes},
	}, cfg.Tools.AtOnce, run, log)
	if err := rmtree.Dir(scratch); err != nil { // each call and each worker has its own directory there, so nothing depends on the old ones
		log.Warn("files of an earlier kernel's programs could not be removed", "error", err)
	}
	if !cfg.Tools.Programs {
		return p, nil // a worker creates it
	}
	if err := unixsock.EnsurePrivateDir(scratch); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// close frees the engine. No job may be running.
func (p *promptware) close() error {
	if p == nil {
		return nil
	}
	p.code.Close()
	return errors.Join(p.tools.Close(), p.trusted.Close())
}

// trusts returns an error if a key's signatures of resources are not accepted. It reads the file again after a change. If
// the file is missing or has unsafe permissions, no key is accepted.
func (p *promptware) trusts(key access.PublicKey, now time.Time) error {
	keys, err := p.trusted.Load()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.log.Error("trusted keys cannot be read", "error", err)
		}
		return err
	}
	_, err = keys.Lookup(key, now)
	return err
}

// invoke is the runner of registered syscalls that no connection provides.
func (p *promptware) invoke(ctx context.Context, job *kernel.Job, do *kernel.Invocation) (schema.Value, error) {
	if do.Code != nil {
		return p.code.Invoke(ctx, job, do)
	}
	return p.tools.Invoke(ctx, job, do)
}

// runsCode returns the check of registered code.
func (d *Daemon) runsCode() actors.Code {
	return actors.Code{Check: d.promptware.code.Check, AtOnce: cmp.Or(d.config.Code.AtOnce, max(2, runtime.GOMAXPROCS(0)))}
}

// runners returns the runners of effects, by the syscall's type. A missing one is a bug, which every start reports.
func (d *Daemon) runners() map[string]kernel.Runner {
	out := abroad.Outgoing{Node: d.cluster}
	runners := map[string]kernel.Runner{
		schema.HTTPFetch.Type:         kernel.Run(d.state.Web.Fetch),
		schema.KernelIngest.Type:      kernel.Run(d.promptware.ingests.Ingest),
		schema.FileSystemHydrate.Type: kernel.Run(d.promptware.ingests.Hydrate),
		schema.SyscallCall.Type:       kernel.Run(d.promptware.tools.Call),
		schema.SyscallInvoke.Type:     kernel.Run(d.promptware.invoke),
		schema.PolicyReload.Type:      kernel.Run(d.policies.Reload),
		schema.ClusterDrop.Type:       kernel.Run(out.Drop),
		schema.SyscallSendMsg.Type:    kernel.Run(out.Send),
		schema.SyscallSpawn.Type:      kernel.Run(out.Run),
		schema.SyscallTerminate.Type:  kernel.Run(out.Run),
		schema.MessageUndo.Type:       kernel.Run(d.undo),
		schema.AuditArchive.Type:      kernel.Run(d.archive),
		schema.AuditRedact.Type:       kernel.Run(d.redact),
		schema.StepBegin.Type:         kernel.Run(d.beginStep),
		schema.StepEnd.Type:           kernel.Run(d.endStep),
		schema.PromptSubmit.Type:      kernel.Run(d.submitPrompt),
		schema.StepUndo.Type:          kernel.Run(d.undoSteps),
		schema.StepRedact.Type:        kernel.Run(d.redactStep),
		schema.ReviewApply.Type:       kernel.Run(d.applyReview),
		schema.ReviewDiscard.Type:     kernel.Run(d.discardReview),
	}
	for _, row := range schema.Syscalls() {
		if row.Outcome != "" && !row.Internal && runners[row.Type] == nil {
			panic("nothing runs the effect " + row.Type)
		}
	}
	return runners
}
