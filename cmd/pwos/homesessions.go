package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/agenthome"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// importSessions copies the sessions that the user has had with a host in this directory into its home inside. Those that are
// there stay, since the agent may have gone on with them.
func (a *app) importSessions(user string, host *preset.Host) (err error) {
	if host.Sessions.Dir == "" {
		return fmt.Errorf("%s keeps the sessions of all projects in one database, which would show them all to the agent", host.Name)
	}
	own, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("find your home: %w", err)
	}
	project, err := workDir("")
	if err != nil {
		return err
	}
	names, err := sessionsOf(&host.Sessions, own, project)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fault.PlaceNotThere.New("you had no session with %s in %s", host.Name, view.Escaped(project)).
			WithFix("run it in the directory of the session")
	}
	homes, err := homesOf(user)
	if err != nil {
		return err
	}
	home, err := homes.Open(host.Name)
	if err != nil {
		return err
	}
	defer cli.CloseInto(&err, home)
	copied, err := copySessions(home, own, names)
	if err != nil {
		return err
	}
	words := append([]string{"pwos", host.Name}, host.Sessions.Resume...)
	a.Say("%s with a session copied, %d already there: %s goes on with the latest one", cli.Counted(int64(copied), "file"), len(names)-copied, quote.Command(words...))
	return nil
}

// copySessions copies the files that the home lacks, and returns how many these were.
func copySessions(home *agenthome.Home, own string, names []string) (copied int, err error) {
	for _, name := range names {
		has, err := home.Has(name)
		if err == nil && !has {
			copied++
			err = home.Import(filepath.Join(own, name), name)
		}
		if err != nil {
			return copied, err
		}
	}
	return copied, nil
}

// sessionsOf returns the files of the sessions of a project, by their names below a home.
func sessionsOf(s *preset.Sessions, home, project string) (names []string, err error) {
	called := ""
	switch {
	case s.Project != nil:
		called = s.Project(project)
	case s.List != "":
		if called, err = projectNamed(filepath.Join(home, s.List), project); called == "" || err != nil {
			return nil, err
		}
	}
	top := filepath.Join(home, strings.ReplaceAll(s.Dir, "{project}", called))
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if s.Named || s.Project != nil { // what a directory is called may stand for several
			if of, err := isSessionOf(path, project); !of {
				return err
			}
		}
		name, err := filepath.Rel(home, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for sessions: %w", err)
	}
	return names, nil
}

// projectNamed returns what a host calls a project in its list; "" if it is not in it.
func projectNamed(path, project string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for sessions: %w", err)
	}
	value, err := hostfile.Member(text, "projects", project)
	if err != nil {
		return "", fmt.Errorf("look for sessions in %s: %w", path, err)
	}
	called, _ := view.As[string](value)
	if called != "" && !filepath.IsLocal(called) {
		return "", fmt.Errorf("look for sessions: %s has the name %q", path, called)
	}
	return called, nil
}

// longestFirst bounds the beginning of a session that is looked at, in bytes.
const longestFirst = 256 << 10

// isSessionOf reports whether the beginning of a file says that it is of a project.
func isSessionOf(path, project string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	text, err := io.ReadAll(io.LimitReader(file, longestFirst))
	return strings.Contains(string(text), `"cwd":`+string(schema.AppendString(nil, project))), errors.Join(err, file.Close())
}
