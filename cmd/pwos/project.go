package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// The answers to the question whether agents see a project's files such as .env.
const (
	shown  = "shown"
	hidden = "hidden"
)

// projectAnswer is what the user has answered for a project. It is kept in the state directory, which no agent sees.
type projectAnswer struct {
	project, env string
	outside      []string // what programs outside run, and agents may change and make, relative to the project
	told         bool     // what an agent host may do was shown at its first start
	trusted      string   // digest of the file of settings that is used; "": none is
}

// object returns it as an object, which is also what its file has.
func (p projectAnswer) object() schema.Value {
	o := view.Object(nil).Text("project", p.project).Text("env", p.env)
	if list, err := schema.Marshal(&p.outside); err == nil && len(p.outside) > 0 { // texts are always valid
		o = o.Raw("outside", list)
	}
	if p.told {
		o = o.Boolean("told", true)
	}
	if p.trusted != "" {
		o = o.Text("trusted", p.trusted)
	}
	return o.Close()
}

func newProject(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "project",
		Short: "what agents see, and may change, of a project",
		Long: `Files of a project that are named .env* usually have credentials: agents see them without their
content, until you have answered once for the project whether they may. "pwos run" asks at a
terminal. "pwos run --read .env" shows a file for one run. Files that agents can read in the
repository anyway, and templates such as .env.example, are shown. A project is the outermost
directory with a repository that the current one is in, or else that one.

What programs of yours run as soon as they meet it, such as .envrc and .vscode/tasks.json, agents
may only read, and what they make of it is set aside until you approve it, unless you allow that
file for the project, or for one run with "pwos run --write .envrc". See docs/agents.md.

.pwos.toml has settings for agent hosts in the project: it is used once you have trusted it as it
is, with "allow .pwos.toml" or at the start of a host. See docs/profiles.md.`,
		Example: `  pwos project
  pwos project allow
  pwos project allow .vscode/settings.json
  pwos project allow .pwos.toml
  pwos project forget ~/src/shop`,
		Args: cli.SubVerb,
		RunE: func(*cobra.Command, []string) error { return a.listProjects() },
	}
	for _, verb := range []struct{ use, of, answer, short, long string }{
		{"allow", "DIR|FILE", shown, "show agents the files named .env* of a project, or let them change a file", "allow shows them to agents that start from now on, or lets these change and make FILE, which\nprograms outside run."},
		{"hide", "DIR", hidden, "do not show them, and do not ask", "hide keeps them hidden, without a question or a line at the end."},
		{"forget", "DIR", "", "ask again", "forget removes all answers for a project, so that the next run asks."},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: verb.use + " [" + verb.of + "]", Short: verb.short, Long: verb.long, Example: "  pwos project " + verb.use, Args: cli.Arguments(cobra.MaximumNArgs(1)),
			RunE: func(_ *cobra.Command, args []string) error {
				at := "."
				if len(args) > 0 {
					at = args[0]
				}
				if verb.answer == shown {
					if allowed, err := allowFile(at); allowed || err != nil {
						return err
					}
				}
				return answerFor(at, verb.answer)
			},
		})
	}
	cmd.AddCommand(&cobra.Command{
		Use: "ls", Short: "list the projects with an answer", Example: "  pwos project ls", Args: cli.Arguments(cobra.NoArgs),
		Long: "ls lists the projects with an answer, and what agents see of them.",
		RunE: func(*cobra.Command, []string) error { return a.listProjects() },
	})
	return cmd
}

// projectOf returns the project of a directory, by its path without symbolic links.
func projectOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("find project: %w", err)
	}
	return held.Project(dir, userHomes()), nil
}

// userHomes returns directories that are no projects.
func userHomes() []string {
	list := []string{"/home", "/root", "/Users"}
	if home, err := os.UserHomeDir(); err == nil {
		list = append(list, filepath.Clean(home))
		if real, err := filepath.EvalSymlinks(home); err == nil {
			list = append(list, real)
		}
	}
	return list
}

func answersDir() (string, error) {
	state, err := cli.StateDir()
	return filepath.Join(state, "projects"), err
}

// answerPath returns the file with the answer for a project.
func answerPath(project string) (string, error) {
	dir, err := answersDir()
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(dir, hex.EncodeToString(sum[:])), err
}

// answered returns the answer for a project, which has only its name if there is none.
func answered(project string) (projectAnswer, error) {
	path, err := answerPath(project)
	if err != nil {
		return projectAnswer{}, err
	}
	answer, err := readAnswer(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	answer.project = project
	return answer, err
}

func readAnswer(path string) (answer projectAnswer, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return answer, fmt.Errorf("read answer for a project: %w", err)
	}
	members, _ := view.Members(bytes.TrimSpace(text)) // one that is damaged is no answer
	answer.project, _ = view.As[string](members["project"])
	answer.env, _ = view.As[string](members["env"])
	answer.outside, _ = view.As[[]string](members["outside"])
	answer.told, _ = view.As[bool](members["told"])
	answer.trusted, _ = view.As[string](members["trusted"])
	return answer, nil
}

// answerFor keeps the answer for the project of a directory, or removes it if it is "".
func answerFor(dir, answer string) error {
	project, err := projectOf(dir)
	if err != nil {
		return err
	}
	if answer != "" {
		all, err := answered(project)
		if err != nil {
			return err
		}
		all.env = answer
		return all.keep()
	}
	path, err := answerPath(project)
	if err != nil {
		return err
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return fault.PlaceNotThere.New("there is no answer for the project %s", view.Escaped(project)).WithFix(`"pwos project ls" lists those there are`)
	} else if err != nil {
		return fmt.Errorf("forget answer: %w", err)
	}
	return nil
}

func (a *app) listProjects() error {
	dir, err := answersDir()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list projects: %w", err)
	}
	list := a.Listing("project", ".env*", "may change")
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // one that is being written
		}
		answer, err := readAnswer(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		if answer.env == "" && answer.outside == nil && answer.trusted == "" {
			continue // the user was told something, and has answered nothing
		}
		if err := list.Add(answer.object(), view.Escaped(answer.project), view.Escaped(cmp.Or(answer.env, hidden)), view.Escaped(strings.Join(answer.outside, ", "))); err != nil {
			return err
		}
	}
	return list.End()
}
