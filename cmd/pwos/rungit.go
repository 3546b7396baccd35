package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/cmd/pwos/internal/gitdirs"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// gitStore returns the store of the private copies that agents have of git's settings and hooks.
func gitStore() (gitdirs.Store, error) {
	state, err := cli.StateDir()
	if err == nil {
		state, err = filepath.Abs(state)
	}
	if real, err := filepath.EvalSymlinks(state); err == nil { // the kernel accepts no symbolic link
		state = real
	}
	return gitdirs.Store(filepath.Join(state, "git")), err
}

// keepGit gives an agent private copies of what the user's git would run, and makes the directories of git writable that belong to its
// project.
func (a *app) keepGit(ctx context.Context, c *client.Client, j *job) error {
	program := &j.input.Program
	if insideAgent() {
		return isHelper(ctx, c)
	}
	if program.Sandbox.Named() == "off" || j.profile.Review { // of a copy, nothing is taken over; a helper has the copies of its parent
		return nil
	}
	store, err := gitStore()
	if err != nil {
		return err
	}
	if err := store.Sweep(ctx, func(pid int64) (bool, error) { return runs(ctx, c, pid) }); err != nil {
		return err
	}
	session, refused, err := store.Begin(ctx, j.input.ChildAgentID, writableDirs(program, filepath.Dir(string(store))))
	if err != nil {
		return err
	}
	if a.StderrTerminal() {
		for _, r := range refused {
			a.Say("git cannot write for %s inside: %s. If it should, name its directory of git with --write", view.Escaped(r.At), view.Escaped(r.Why))
		}
	}
	if session == nil {
		return nil
	}
	sandbox := schema.Sandbox{}
	if program.Sandbox != nil {
		sandbox = *program.Sandbox
	}
	sandbox.Copies = session.Copies()
	program.Sandbox, j.git = &sandbox, session
	return nil
}

// writableDirs returns the directories that a program may write, without those in the state directory.
func writableDirs(program *schema.Program, state string) (dirs []string) {
	var read, write []string
	if s := program.Sandbox; s != nil {
		read, write = s.Read, s.Write
	}
	if program.Cwd != nil {
		write = append([]string{*program.Cwd}, write...)
	}
	in := func(path, dir string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	}
	for _, path := range write {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || in(path, state) || slices.ContainsFunc(read, func(dir string) bool { return in(path, dir) }) {
			continue
		}
		dirs = append(dirs, path)
	}
	return dirs
}

// runs reports whether a process has a program that has not ended.
func runs(ctx context.Context, c *client.Client, pid int64) (bool, error) {
	d, err := cli.Describe(ctx, c, pid)
	if cli.KernelCode(err) == 404 {
		return false, nil // it was forgotten, or is another kernel's
	}
	return err == nil && !view.Ended(&d), err
}

// settleGit takes over what is safe of what an agent has changed for git, asks about the rest, and says what is left. It does nothing while
// the agent runs.
func (a *app) settleGit(ctx context.Context, c *client.Client, j *job) error {
	if j.git == nil {
		return nil
	}
	bound, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	if j.git.PID != 0 {
		if alive, err := runs(bound, c, j.git.PID); err != nil || alive {
			return errors.Join(err, j.git.Detach())
		}
	}
	store, err := gitStore()
	if err != nil {
		return err
	}
	o, err := store.End(bound, j.git)
	if err != nil {
		return err
	}
	a.tellGit(&o)
	if len(o.Left) > 0 && !j.detach && a.inForeground() {
		if o.Left, err = a.askGit(ctx, store, o.Left); err != nil {
			return err
		}
	}
	a.tellLeft(o.Left)
	return nil
}

// tellGit says the outcome of an agent's changes, at a terminal or if there is something to answer.
func (a *app) tellGit(o *gitdirs.Outcome) {
	terminal := a.StderrTerminal()
	if terminal && len(o.Taken) > 0 {
		a.Say("git: took over %s", escapedList(o.Taken))
	}
	for _, made := range o.Made {
		switch {
		case len(made.Runs) > 0:
			a.Say("git: the agent made the repository %s, in which git runs or reads what it set: %s", view.Escaped(made.At), escapedList(made.Runs))
		case terminal:
			a.Say("git: the agent made the repository %s", view.Escaped(made.At))
		}
	}
}

// tellLeft names the changes that wait for an answer.
func (a *app) tellLeft(left []gitdirs.Change) {
	if len(left) == 0 {
		return
	}
	var keys []string
	for i := range left {
		keys = append(keys, changeName(&left[i]))
	}
	a.Say(`git: the agent changed %s, for itself only: "pwos git" shows how, "pwos git take" does it for you too`, escapedList(slices.Compact(keys)))
}

// escapedList is a list of texts of an agent for a line.
func escapedList(texts []string) string {
	const most = 8
	list := make([]string, 0, most)
	for _, text := range texts[:min(len(texts), most)] {
		list = append(list, view.Escaped(text))
	}
	if len(texts) > most {
		list = append(list, "…")
	}
	return strings.Join(list, ", ")
}
