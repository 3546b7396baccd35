package main

import (
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema"
)

// Functions that the tests of run use.
var (
	LimitsOf = limitsOf
	EnvOf    = envOf
	Inside   = inside
	TicksOf  = ticksOf
)

// EndStatus returns the exit status of run for an agent with this last descriptor.
func EndStatus(d schema.Descriptor) int { return cli.Status(ended(d), false) }

// ProfileFlags returns the flags of a profile as command-line arguments.
func ProfileFlags(p *config.Profile, dir, home string) (all []string) {
	for _, one := range profileFlags(p, dir, home) {
		for _, value := range one.values {
			all = append(all, "--"+one.name+"="+value)
		}
	}
	return all
}
