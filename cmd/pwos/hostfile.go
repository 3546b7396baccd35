package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

// errNoHome reports that the path of a host's file is unknown.
var errNoHome = errors.New("find the host's configuration: HOME is not set")

// inHome returns a path below the user's home directory, or the directory that the variable names if that is set.
func inHome(variable, otherwise string) (string, error) {
	if dir := os.Getenv(variable); variable != "" && dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.Join(errNoHome, err)
	}
	return filepath.Join(home, otherwise), nil
}

// hostFile returns a function that finds a host's file: that of the project, relative to the current directory, or that of the user,
// below the home directory or the directory that a variable names.
func hostFile(project, variable, dir, name string) func(bool) (string, error) {
	return func(ofProject bool) (string, error) {
		if ofProject {
			return filepath.Abs(project)
		}
		in, err := inHome(variable, dir)
		return filepath.Join(in, name), err
	}
}

// vscodeFile returns the path of VS Code's file of MCP servers.
func vscodeFile(project bool) (string, error) {
	variable, dir := "XDG_CONFIG_HOME", ".config"
	if runtime.GOOS == "darwin" {
		variable, dir = "", "Library/Application Support"
	}
	return hostFile(".vscode/mcp.json", variable, dir, "Code/User/mcp.json")(project)
}
