package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// hold decides which of the project's files such as .env the program sees. The kernel hides those that nothing is said about.
func (a *app) hold(ctx context.Context, j *job) error {
	program := &j.input.Program
	if program.Cwd == nil || program.Sandbox.Named() == "off" {
		return nil
	}
	sandbox := schema.Sandbox{}
	if program.Sandbox != nil {
		sandbox = *program.Sandbox
	}
	project := held.Project(*program.Cwd, userHomes())
	answer, err := answered(project)
	if err != nil {
		return err
	}
	if allowed := answer.writable(*program.Cwd, &sandbox); allowed != nil {
		sandbox.Write = append(slices.Clip(sandbox.Write), allowed...)
		program.Sandbox = &sandbox
	}
	if answer.env == shown {
		sandbox.Hold = []string{}
		program.Sandbox = &sandbox
		return nil
	}
	found, err := held.Search(*program.Cwd, userHomes())
	if errors.Is(err, held.ErrTooMany) {
		return nil // the kernel refuses it
	}
	if err != nil {
		return err
	}
	files := slices.DeleteFunc(found.Hidden, func(path string) bool {
		return slices.Contains(sandbox.Read, path) || slices.Contains(sandbox.Write, path) || covered(path, sandbox.Hide)
	})
	if len(files) == 0 {
		return nil
	}
	if public := inRepository(ctx, j.as.other, project, files); len(public) > 0 {
		files = slices.DeleteFunc(files, func(path string) bool { return slices.Contains(public, path) })
		name(&sandbox, *program.Cwd, public)
		program.Sandbox = &sandbox
	}
	if len(files) == 0 || answer.env == hidden {
		return nil
	}
	for i, path := range files {
		files[i], _ = filepath.Rel(project, path) // it is below that
	}
	if j.explain || j.detach || !a.inForeground() {
		j.held = named(files)
		return nil
	}
	switch key, err := cli.AskKey(ctx, fmt.Sprintf("pwos: agents do not see what is in %s. Show it to agents of this project, from now on? [y/N] ", named(files))); {
	case err != nil:
		return err
	case key == 'y' || key == 'Y':
		if err := answerFor(project, shown); err != nil {
			return err
		}
		sandbox.Hold = []string{}
		program.Sandbox = &sandbox
		return nil
	default:
		return answerFor(project, hidden)
	}
}

// name names files, so that they are shown, with the rights that the program has where they are.
func name(s *schema.Sandbox, dir string, files []string) {
	for _, path := range files {
		switch {
		case covered(path, s.Read):
			s.Read = append(slices.Clip(s.Read), path)
		case covered(path, []string{dir}) || covered(path, s.Write):
			s.Write = append(slices.Clip(s.Write), path)
		case s.Named() != "strict":
			s.Read = append(slices.Clip(s.Read), path)
		}
	}
}

// covered reports whether a path is one of these, or in one.
func covered(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") })
}

// mostNamed is how many files named names.
const mostNamed = 3

// named names files in a sentence.
func named(files []string) string {
	list := make([]string, 0, mostNamed)
	for _, file := range files[:min(len(files), mostNamed)] {
		list = append(list, view.Escaped(file))
	}
	if more := len(files) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list, ", "), more)
	}
	return strings.Join(list, ", ")
}

// tellHeld says at the end what was hidden without a question, and how to answer it.
func (a *app) tellHeld(j *job) {
	if j.held != "" {
		a.Say(`%s of the project was hidden from the agent: "pwos project allow" shows it to agents from now on, "pwos project hide" does not and ends this line`, j.held)
	}
}

// inForeground reports whether somebody can be asked at a terminal.
func (a *app) inForeground() bool {
	if !a.StdinTerminal() || !a.StderrTerminal() {
		return false
	}
	group, err := unix.IoctlGetInt(int(a.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// longestHashed bounds the files that are compared with a repository, in bytes.
const longestHashed = 1 << 20

// inRepository returns those of a project's files that its repository has with the same content: an agent can read them there.
func inRepository(ctx context.Context, of *osuser.User, project string, files []string) (list []string) {
	if _, err := os.Lstat(filepath.Join(project, ".git")); err != nil {
		return nil
	}
	// The repository's settings may be an agent's: no program that they name is run.
	args := []string{"-C", project, "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "ls-files", "-s", "-z", "--full-name", "--"}
	cmd := exec.CommandContext(ctx, "git", append(args, files...)...)
	if of != nil { // else git refuses the repository of another user, and root should not read its settings
		cmd.Env, cmd.SysProcAttr = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}, as(of)
	}
	out, err := cmd.Output()
	if err != nil {
		return nil // there is no git here, or no repository of this user's
	}
	for line := range bytes.SplitSeq(out, []byte{0}) {
		about, name, _ := strings.Cut(string(line), "\t")
		fields := strings.Fields(about) // mode, object, stage
		path := filepath.Join(project, name)
		if len(fields) != 3 || !slices.Contains(files, path) {
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > longestHashed {
			continue
		}
		text, err := os.ReadFile(path)
		if err == nil && slices.Contains(objects(text), fields[1]) {
			list = append(list, path)
		}
	}
	return list
}

// objects returns the names that git may give to a content.
func objects(text []byte) []string {
	text = append(fmt.Appendf(nil, "blob %d\x00", len(text)), text...)
	short, long := sha1.Sum(text), sha256.Sum256(text)
	return []string{hex.EncodeToString(short[:]), hex.EncodeToString(long[:])}
}
