package main

import (
	"context"
	"strings"

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

// Keys names the keys that a terminal has sent in one piece.
func Keys(typed string) string {
	var names []string
	for _, k := range keysOf([]byte(typed)) {
		switch k {
		case keyUp:
			names = append(names, "up")
		case keyDown:
			names = append(names, "down")
		default:
			names = append(names, string(rune(k)))
		}
	}
	return strings.Join(names, " ")
}

// KeysUntil is readKeys with nobody to take the keys, ended by ctx.
func KeysUntil(ctx context.Context, typed string) (open bool) {
	keys := make(chan key)
	readKeys(ctx, strings.NewReader(typed), keys)
	_, open = <-keys
	return open
}

// ProfileFlags are the flags that a profile stands for, as they would be given.
func ProfileFlags(p *config.Profile, dir, home string) (all []string) {
	for _, one := range profileFlags(p, dir, home) {
		for _, value := range one.values {
			all = append(all, "--"+one.name+"="+value)
		}
	}
	return all
}
