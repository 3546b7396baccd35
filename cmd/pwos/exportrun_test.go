package main

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
)

// Functions that the tests of run use.
var (
	Inside  = inside
	TicksOf = ticksOf
)

// EndStatus returns the exit status of run for an agent with this last descriptor.
func EndStatus(d schema.Descriptor) int { return cli.Status(new(job).ended(d), false) }

// RunFlags returns the flags of run, and its help.
func RunFlags() (flags *pflag.FlagSet, help string) {
	root := newRoot(newApp(os.Stdin, os.Stdout, os.Stderr))
	cmd, _, err := root.Find([]string{"run"})
	if err != nil {
		panic(err)
	}
	cmd.InitDefaultHelpFlag()
	return cmd.Flags(), cmd.UsageString()
}

// Presets returns the names of the presets.
func Presets() []string { return preset.Names() }

// GitKeys matches the settings of git that agents have from their user.
const GitKeys = gitKeys

// The functions that tell whether a user's git has settings.
var GitFiles, HasGitSettings = gitFiles, hasGitSettings
