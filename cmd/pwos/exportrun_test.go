package main

import (
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema"
)

// What the tests of run, learn, top and demo look at.
var (
	LimitsOf = limitsOf
	EnvOf    = envOf
	Inside   = inside
	TicksOf  = ticksOf
)

// EndStatus is the exit status of run for an agent that ended so.
func EndStatus(d schema.Descriptor) int { return status(ended(d), false) }

// ProfileFlags are the flags that a profile stands for, as they would be given.
func ProfileFlags(p *config.Profile, dir, home string) (all []string) {
	for _, one := range profileFlags(p, dir, home) {
		for _, value := range one.values {
			all = append(all, "--"+one.name+"="+value)
		}
	}
	return all
}
