package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/policy"
)

func newPolicyCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE…]",
		Short: "check rules without a kernel",
		Long: `check reads rules and reports what is wrong with them, as FILE:LINE: text: what is no
Cedar, names and types that no syscall has, and rules that can never match. It needs no
kernel. Default: policy.cedar and policy.d/*.cedar beside the configuration.

Exit status: 0 they can be loaded, 2 they cannot.`,
		Example: `  pwos policy check
  pwos policy check new.cedar`,
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := a.policyOf(args)
			return err
		},
	}
}

// policyOf is the rules of files, of those beside the configuration where none is named. What is wrong is shown on stderr.
func (a *app) policyOf(paths []string) (*policy.Set, error) {
	var files []policy.File
	var err error
	if len(paths) > 0 {
		files, err = policy.ReadFiles(paths)
	} else {
		files, err = policy.Read(client.ConfigFile())
	}
	if err != nil {
		return nil, misuse("pwos policy check", err)
	}
	set, problems := policy.Compile(files)
	wrong := 0
	for _, p := range problems {
		if _, err := fmt.Fprintln(a.stderr, p); err != nil {
			return nil, fmt.Errorf("write output: %w", err)
		}
		if !p.Warning {
			wrong++
		}
	}
	switch {
	case wrong > 0:
		a.say("the policy is not valid")
		return nil, exitStatus(exitUsage)
	case len(files) == 0:
		a.say("there is no policy: neither policy.cedar nor policy.d/*.cedar is there")
		return nil, nil
	case set == nil:
		return nil, errors.New("check policy: no rules came of valid files")
	}
	a.say("%d rules in %d files are valid", len(set.Rules), len(files))
	return set, nil
}
