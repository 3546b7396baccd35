package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/door/hostfile"
)

// hostFlags are the flags of the verbs that change a host's configuration.
type hostFlags struct {
	dryRun, project bool
}

func (f *hostFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the change without making it")
	cmd.Flags().BoolVar(&f.project, "project", false, "the configuration of the project in this directory instead of the user's")
}

// changeHost changes a host's file and prints the change.
func (a *app) changeHost(f *hostFlags, file func(project bool) (string, error), edit func([]byte) ([]byte, error)) error {
	path, err := file(f.project)
	if err != nil {
		return err
	}
	mode := os.FileMode(0o600)
	if f.project {
		mode = 0o644
	}
	change, err := hostfile.Plan(path, mode, edit)
	if err != nil {
		return err
	}
	if change.Empty() {
		a.Say("nothing to change in %s", path)
		return nil
	}
	if err := a.Print(change.Diff()); err != nil {
		return err
	}
	if f.dryRun {
		a.Say("not written, because of --dry-run")
		return nil
	}
	backup, err := change.Apply(time.Now())
	if err != nil {
		return err
	}
	if backup != "" {
		a.Say("the old %s is kept in %s", path, backup)
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
