package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// projectFile is a project's own file of settings, which agents cannot write.
const projectFile = ".pwos.toml"

// longestProjectFile bounds it, in bytes.
const longestProjectFile = 64 << 10

// defaultsOf returns the settings of an agent host that was given none, in a directory ("": the current one): those of the default
// profile, or of the one that the project's file names, narrowed by that file if its user trusts it. profiles has those of the user.
func (a *app) defaultsOf(ctx context.Context, profiles, dir string) (*profile.Profile, error) {
	project, err := projectOf(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(project, projectFile)
	text, err := readProjectFile(path)
	if err != nil {
		return nil, err
	}
	if text != nil && !insideAgent() { // the parent is narrowed by it, and so is what it starts
		trusted, err := a.trusts(ctx, project, text)
		if err != nil {
			return nil, err
		}
		if trusted {
			return profile.OfProject(path, text, func(name string) (*profile.Profile, error) { return profile.Read(profiles, name) }, defaultProfile)
		}
	}
	return profile.Read(profiles, defaultProfile)
}

// readProjectFile returns the text of a project's file, nil if there is none.
func readProjectFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read settings of the project: %w", err)
	case !info.Mode().IsRegular(): // a link could lead to a file that agents write
		return nil, fmt.Errorf("%s is not a regular file", quote.Text(path))
	case info.Size() > longestProjectFile:
		return nil, fmt.Errorf("%s has more than %d bytes", quote.Text(path), longestProjectFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read settings of the project: %w", err)
	}
	if text == nil {
		text = []byte{}
	}
	return text, nil
}

// trusts reports whether the user trusts the text of a project's file. It asks at a terminal, and otherwise says that it is not used.
func (a *app) trusts(ctx context.Context, project string, text []byte) (bool, error) {
	answer, err := answered(project)
	if err != nil {
		return false, err
	}
	digest := digestOf(text)
	if answer.trusted == digest {
		return true, nil
	}
	path := filepath.Join(project, projectFile)
	if !a.inForeground() {
		a.note("%s is not used, since you have not trusted it as it is: %s does", view.Escaped(path), quote.Command("pwos", "project", "allow", path))
		return false, nil
	}
	a.Say("the project has settings for its agents, %s:", view.Escaped(path))
	for line := range strings.Lines(string(text)) {
		fmt.Fprintln(a.Stderr, "  "+view.Escaped(strings.TrimRight(line, "\r\n")))
	}
	key, err := cli.AskKey(ctx, "pwos: Use them, from now on, as they are? [y/N] ")
	if err != nil || key != 'y' && key != 'Y' {
		return false, err
	}
	answer.trusted = digest
	return true, answer.keep()
}

// trustFile has the user trust a project's file as it is now.
func trustFile(path string) error {
	text, err := readProjectFile(path)
	if err == nil && text == nil {
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if err != nil {
		return err
	}
	answer, err := answered(held.Project(filepath.Dir(path), userHomes()))
	if err != nil {
		return err
	}
	if at := filepath.Join(answer.project, projectFile); at != path {
		return fmt.Errorf("%s is not used: the project is %s, whose file is %s", quote.Text(path), quote.Text(answer.project), quote.Text(at))
	}
	answer.trusted = digestOf(text)
	return answer.keep()
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
