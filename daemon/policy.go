package daemon

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// policies are the rules beside the configuration, and the stage that judges calls by them.
type policies struct {
	config string // the configuration's path; "": there is none
	guard  *policy.Guard
	log    *slog.Logger
	note   func(schema.Request) // journals that rules were loaded

	mu sync.Mutex // one is loaded at a time
}

// newPolicies reads the rules for the first time. Where they are not valid every agent is refused, and the operator served.
func newPolicies(config string, s *state, log *slog.Logger) *policies {
	view := s.processes.Processes()
	forms := policy.Forms{URL: fetch.Normal, Names: names{s.space, view}}
	return &policies{config: config, guard: policy.NewGuard(forms, view, s.self.Registry()), log: log}
}

// begin loads the rules of the start. note is called where there are some.
func (p *policies) begin(note func(schema.Request)) {
	p.note = note
	if _, err := p.load(); err != nil {
		why := fault.Of(err).Text()
		p.log.Error("no agent is served: the policy is not valid", "problem", why)
		p.guard.Refuse(why)
	}
}

// read is the rules as the files have them now; nil: there are no files.
func (p *policies) read() (set *policy.Set, warnings []string, err error) {
	files, err := policy.Read(p.config)
	if err != nil {
		return nil, nil, fault.PolicyInvalid.New("the policy cannot be read").Wrap(err)
	}
	set, problems := policy.Compile(files)
	for _, one := range problems {
		if !one.Warning {
			return nil, nil, fault.PolicyInvalid.New("%s", one)
		}
		warnings = append(warnings, strings.Replace(one.String(), "warning: ", "", 1))
	}
	return set, warnings, nil
}

// load takes the rules of all files, or leaves everything as it was.
func (p *policies) load() (*schema.PolicyReloadOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set, warnings, err := p.read()
	if err != nil {
		return nil, err
	}
	out := &schema.PolicyReloadOutput{Files: []string{}, Warnings: append([]string{}, warnings...)}
	before := p.guard.Show(0)
	if set != nil {
		out.Hash, out.Files, out.Rules = set.Hash, set.Files, int64(len(set.Rules))
	}
	if set != nil || before.Hash != "" || before.Invalid != "" {
		p.note(schema.PolicyLoaded.With(&schema.PolicyLoadedInput{Hash: out.Hash, Files: out.Files})) // it stands before what is judged by them
		p.log.Info("policy loaded", "hash", out.Hash, "files", len(out.Files), "rules", out.Rules)
	}
	for _, warning := range warnings {
		p.log.Warn("policy", "warning", warning)
	}
	p.guard.Use(set)
	return out, nil
}

// run does Policy.Reload.
func (p *policies) run(context.Context, *kernel.Job, *schema.PolicyReloadInput) (*schema.PolicyReloadOutput, error) {
	return p.load()
}

// shownRules is how many rules Policy.Show answers at most, so that they fit a line.
const shownRules = 60

// show is what Policy.Show answers.
func (p *policies) show() schema.PolicyShowOutput { return p.guard.Show(shownRules) }

// Reload has Run read the policy again, as Policy.Reload does. It does not wait, and is for signals.
func (d *Daemon) Reload() {
	select {
	case d.reloads <- struct{}{}:
	default: // one is to come
	}
}

func (d *Daemon) reload(ctx context.Context) {
	if _, err := d.kernel.DoUntil(ctx, "", schema.PolicyReload.With(&schema.PolicyReloadInput{})); err != nil {
		d.log.Error("the policy stays as it was", "error", err)
	}
}

// nobody has adopted nothing.
type nobody struct{}

func (nobody) Adopted(int64, string) *schema.Identity { return nil }

// PolicyForms are the forms in which a kernel with the configuration of that path judges names and addresses, without the kernel: nobody
// has adopted a resource that names could stand beside.
func PolicyForms(path string, getenv func(string) string) (policy.Forms, error) {
	cfg := config.Default(getenv, 0, "/")
	if err := cfg.Load(path, false, getenv); err != nil {
		return policy.Forms{}, err
	}
	space, err := cfg.Space()
	if err != nil {
		return policy.Forms{}, err
	}
	return policy.Forms{URL: fetch.Normal, Names: names{space, nobody{}}}, nil
}
