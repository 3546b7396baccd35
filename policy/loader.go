package policy

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Loader has a Guard go by the rules beside the configuration.
type Loader struct {
	*Guard
	config string // the configuration's path; "": there is none
	log    *slog.Logger
	note   func(schema.Request) // journals that rules were loaded

	mu sync.Mutex // one is loaded at a time
}

// NewLoader loads the rules beside the configuration of that path, "" where there is none, into a guard once it begins.
func NewLoader(config string, guard *Guard, log *slog.Logger) *Loader {
	return &Loader{Guard: guard, config: config, log: log}
}

// Begin loads the rules of the start; note journals them where there are some. Where they are not valid every agent is refused, and the
// operator served.
func (p *Loader) Begin(note func(schema.Request)) {
	p.note = note
	if _, err := p.load(); err != nil {
		why := fault.Of(err).Text()
		p.log.Error("no agent is served: the policy is not valid", "problem", why)
		p.Guard.Refuse(why)
	}
}

// read is the rules as the files have them now; nil: there are no files.
func (p *Loader) read() (set *Set, warnings []string, err error) {
	files, err := Read(p.config)
	if err != nil {
		return nil, nil, fault.PolicyInvalid.New("the policy cannot be read").Wrap(err)
	}
	set, problems := Compile(files)
	for _, one := range problems {
		if !one.Warning {
			return nil, nil, fault.PolicyInvalid.New("%s", one)
		}
		warnings = append(warnings, strings.Replace(one.String(), "warning: ", "", 1))
	}
	return set, warnings, nil
}

// load takes the rules of all files, or leaves everything as it was.
func (p *Loader) load() (*schema.PolicyReloadOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set, warnings, err := p.read()
	if err != nil {
		return nil, err
	}
	out := &schema.PolicyReloadOutput{Files: []string{}, Warnings: append([]string{}, warnings...)}
	before := p.Guard.Show(0)
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
	p.Guard.Use(set)
	return out, nil
}

// Reload does Policy.Reload.
func (p *Loader) Reload(context.Context, *kernel.Job, *schema.PolicyReloadInput) (*schema.PolicyReloadOutput, error) {
	return p.load()
}

// shownRules is how many rules Policy.Show answers at most, so that they fit a line.
const shownRules = 60

// Shown is what Policy.Show answers.
func (p *Loader) Shown() schema.PolicyShowOutput { return p.Guard.Show(shownRules) }
