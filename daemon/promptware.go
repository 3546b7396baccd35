package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/ingest"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/sshauth"
	"github.com/promptware-os/pwos/transport/unixsock"
	"github.com/promptware-os/pwos/uri"
	"github.com/promptware-os/pwos/usercall"
)

// cachedModules is how many compiled modules are kept: a module of a large language takes a few MB.
const cachedModules = 32

// promptware does what Kernel.Ingest, FileSystem.Hydrate and a Syscall.Call of a path need done outside the kernel.
type promptware struct {
	space   *uri.Space
	log     *slog.Logger
	web     func(*actors.Job) ingest.Web // of one job: whom it may talk to is its token's matter
	ingests ingest.Pipeline
	trusted *sshauth.Source // the keys whose signatures of resources count
	tools   usercall.Caller

	private []string                   // hidden from programs
	scratch string                     // holds what programs work on; "": programs are not run
	host    func() (*host.Host, error) // opened for the first program
	// slots has room for each tool that may run: a module computes on the kernel's own threads, so that as many of them as there
	// are processors would leave it to wait for its turn, tens of milliseconds at a time.
	slots chan struct{}
}

// newPromptware needs the daemon's directories, and empties what the kernel before has left in its scratch.
func newPromptware(cfg *config.Config, s *state, programs *programs, web func(*actors.Job) ingest.Web, log *slog.Logger) (*promptware, error) {
	modules, err := usercall.NewModules(cmp.Or(cfg.Tools.MemoryBytes, 64<<20), cachedModules)
	if err != nil {
		return nil, fmt.Errorf("make engine of modules: %w", err)
	}
	p := &promptware{
		space: s.space, log: log, web: web,
		ingests: ingest.Pipeline{
			Space: s.space, Files: s.tree,
			Policy: ingest.Policy{Proof: cfg.Ingest.Proof, Unpinned: cfg.Ingest.Unpinned},
		},
		tools: usercall.Caller{
			Space: s.space, Files: s.tree, Modules: modules,
			Limits: usercall.Limits{Time: time.Duration(cfg.Tools.Time), OutputBytes: cfg.Tools.OutputBytes},
		},
		trusted: sshauth.NewSource(cfg.TrustedKeys(), time.Now),
		slots:   make(chan struct{}, cmp.Or(cfg.Tools.AtOnce, max(1, runtime.GOMAXPROCS(0)/2))),
	}
	if cfg.TrustedKeys() != "" {
		p.ingests.Policy.Trusted = p.trusts
	}
	if !cfg.Tools.Programs {
		return p, nil
	}
	p.private = private(*cfg)
	p.scratch, p.host = filepath.Join(cfg.StateDir, "scratch"), programs.host
	if err := empty(p.scratch); err != nil { // each call has a directory of its own there: nothing depends on it
		log.Warn("what tools of an earlier kernel have left could not be removed", "error", err)
	}
	if err := unixsock.EnsurePrivateDir(p.scratch); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// empty removes a directory with all that is in it, also where a program has closed directories to its own user.
func empty(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			_ = os.Chmod(name, 0o700) // before it is read
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// close frees the engine. No job may be under way.
func (p *promptware) close() error {
	if p == nil {
		return nil
	}
	return errors.Join(p.tools.Modules.Close(), p.trusted.Close())
}

// trusts says whether a key counts that has signed a resource. The file is read again when it has changed; one that is
// not there, or cannot be believed, trusts nobody.
func (p *promptware) trusts(key sshauth.PublicKey, now time.Time) error {
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

func (p *promptware) runners() map[string]actors.Runner {
	return map[string]actors.Runner{
		"Kernel.Ingest":      p.ingest,
		"FileSystem.Hydrate": p.hydrate,
		schema.CallType:      p.call,
	}
}

// pipeline is that of one job.
func (p *promptware) pipeline(job *actors.Job) *ingest.Pipeline {
	own := p.ingests
	own.Web = p.web(job)
	return &own
}

// ingest goes through the phases up to Load. Nothing is stored before its outcome is decided.
func (p *promptware) ingest(ctx context.Context, job *actors.Job) ([]byte, error) {
	do := job.Do.(*process.Ingest)
	result, err := p.pipeline(job).Run(ctx, ingest.Request{URI: do.URI, Base: do.Base, Integrity: do.Integrity, Now: time.UnixMilli(job.Time)})
	if err != nil {
		return nil, callFault(ctx, err)
	}
	is := result.Identity
	return schema.Marshal(&schema.Adoption{
		Identity: schema.Identity{
			ContextID: is.ContextID, URI: is.URI, Digest: is.Digest, Name: is.Name, Proof: string(is.Proof), Signer: is.Signer,
		},
		FrontMatter: string(result.Loaded.FrontMatter), Content: result.Loaded.Content,
	})
}

// hydrate reads what the front matter of a resource lists.
func (p *promptware) hydrate(ctx context.Context, job *actors.Job) ([]byte, error) {
	do, now := job.Do.(*process.Hydrate), time.UnixMilli(job.Time)
	pipeline := p.pipeline(job)
	loaded, err := reload(ctx, pipeline, do, now)
	if err != nil {
		return nil, callFault(ctx, err)
	}
	items, err := pipeline.Hydrate(ctx, loaded, now)
	if err != nil {
		return nil, callFault(ctx, err)
	}
	out := &schema.HydrateOutput{URI: loaded.URI, Skills: []schema.HydratedItem{}, Tools: []schema.HydratedItem{}}
	for _, item := range items {
		list := &out.Skills
		if item.Kind == ingest.Tool {
			list = &out.Tools
		}
		if !schema.ValidWithin(item.Input, schema.MaxKeptDepth) {
			item.Input = nil // too deep to be told of, or none
		}
		*list = append(*list, schema.HydratedItem{
			URI: item.URI, Name: item.Name, Description: item.Description, Digest: item.Digest, Input: item.Input,
		})
	}
	return schema.Marshal(out)
}

// reload is the resource that is to be hydrated: as it was adopted, or as it is.
func reload(ctx context.Context, p *ingest.Pipeline, do *process.Hydrate, now time.Time) (*ingest.Loaded, error) {
	if do.FrontMatter != "" {
		return p.Recall(do.URI, []byte(do.FrontMatter))
	}
	result, err := p.Run(ctx, ingest.Request{URI: do.URI, Base: do.Base, Now: now})
	if err != nil {
		return nil, err
	}
	return result.Loaded, nil
}
