package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/agenthome"
	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newHome(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "home",
		Short: "the homes of agents: list, remove, or put files into them",
		Long: `An agent of "pwos run" has a permanent home of its name: what its programs keep in HOME, such
as caches, histories and logins. Agents of another name do not see it. What programs read by
themselves at a start (start files of shells, configurations of git, editors and hosts) is
renewed before each start, with the user's name of git and with what was imported.`,
		Example: `  pwos home ls
  pwos home import claude .vimrc .claude/settings.json
  pwos home rm claude`,
		Args: cli.SubVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listHomes() },
	}
	var user string
	cmd.PersistentFlags().StringVar(&user, "user", "", "the homes in which programs run as this user, by name or number, as with run --user")
	cmd.AddCommand(&cobra.Command{
		Use: "ls", Short: "list the homes of agents", Example: "  pwos home ls", Args: cli.Arguments(cobra.NoArgs),
		Long: `ls lists the names that have a home, where that is, and how much of the disk it takes; and the
caches that agents share (--cache), and the temporary files of those that run.`,
		RunE: func(*cobra.Command, []string) error { return a.listHomes() },
	}, &cobra.Command{
		Use: "rm NAME...", Short: "remove homes of agents", Example: "  pwos home rm claude", Args: cli.Arguments(cobra.MinimumNArgs(1)),
		Long: `rm removes the home of a name, with what was imported into it. It refuses one that an agent
uses that runs.

Exit status: 4 there is no such home, 8 an agent that runs uses it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if err := a.removeHome(cmd.Context(), user, name); err != nil {
					return err
				}
			}
			return nil
		},
	}, &cobra.Command{
		Use: "import NAME [FILE...]", Short: "put files of your home, or sessions of a host, into the home of an agent", Args: cli.Arguments(cobra.MinimumNArgs(1)),
		Example: "  pwos home import claude .vimrc .claude/settings.json\n  pwos home import claude && pwos claude --continue",
		Long: `import copies regular files of your home into the home of a name, under the same names. One
that is renewed at each start is kept, and put there at each start; another is copied once.

With the name of an agent host alone, it copies the sessions that you had with it outside in this
directory, so that it can go on with them inside: what was said in them is shown to the agent. Those
that are there stay.

Exit status: 4 there is no session.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return importHome(user, args[0], args[1:])
			}
			host := preset.Named(args[0])
			if host == nil {
				return cli.Usage(cmd, fmt.Errorf("name the files, or one of %s, whose sessions are copied", strings.Join(preset.Names(), ", ")))
			}
			return a.importSessions(user, host)
		},
	})
	return cmd
}

// listHomes lists what agents keep on the disk: homes, shared caches, and the temporary files of those that run.
func (a *app) listHomes() error {
	homes, err := agentHomes()
	if err != nil {
		return err
	}
	users, err := homes.Users()
	if err != nil {
		return err
	}
	list := a.Listing("name", "user", "size", "directory")
	add := func(o view.Object, name, user, at string) error {
		if user != "" {
			o = o.Text("user", user)
		}
		size := agenthome.Size(at, nil)
		return list.Add(o.Integer("bytes", size).Text("directory", at).Close(), name, user, view.Bytes(size), view.Escaped(at))
	}
	addAll := func(of agenthome.Store, user string) error {
		names, err := of.List()
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := add(view.Object(nil).Text("name", name), view.Escaped(name), user, of.Path(name)); err != nil {
				return err
			}
		}
		if at := of.CacheDir(); isDir(at) {
			return add(view.Object(nil).Boolean("cache", true), "(caches, of --cache)", user, at)
		}
		return nil
	}
	if err := addAll(homes, ""); err != nil {
		return err
	}
	for _, uid := range users {
		if err := addAll(homes.Of(uid), strconv.Itoa(uid)); err != nil {
			return err
		}
	}
	tmp := filepath.Join(filepath.Dir(string(homes)), "agents", "tmp")
	running, err := os.ReadDir(tmp)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list temporary files: %w", err)
	}
	for _, entry := range running {
		if pid, err := strconv.ParseInt(entry.Name(), 10, 64); err == nil {
			if err := add(view.Object(nil).Integer("pid", pid), fmt.Sprintf("(/tmp of pid %d)", pid), "", filepath.Join(tmp, entry.Name())); err != nil {
				return err
			}
		}
	}
	return list.End()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// homesOf returns the store of the homes in which programs run as a user; "" is the usual one.
func homesOf(user string) (agenthome.Store, error) {
	homes, err := agentHomes()
	if user == "" || err != nil {
		return homes, err
	}
	u, err := osuser.Find(user)
	if err != nil {
		return "", fmt.Errorf("--user: %w", err)
	}
	if u.UID == usualUser().UID {
		return homes, nil
	}
	return homes.Of(u.UID), nil
}

// removeHome removes the home of a name, unless an agent with that name, or with a number added to it, runs.
func (a *app) removeHome(ctx context.Context, user, name string) error {
	homes, err := homesOf(user)
	if err != nil {
		return err
	}
	ctx, cancel := a.Bound(ctx, cli.UsualTimeout)
	defer cancel()
	c, err := a.DialRunning(ctx)
	switch {
	case err == nil:
		err = errors.Join(unused(ctx, c, name), c.Close())
	case errors.Is(err, fault.DaemonNotRunning):
		err = nil
	}
	if err != nil {
		return err
	}
	err = homes.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.PlaceNotThere.New("no agent named %s has a home", view.Escaped(name)).WithFix(`"pwos home ls" lists those there are`)
	}
	return err
}

func unused(ctx context.Context, c *client.Client, name string) error {
	processes, err := cli.ListProcesses(ctx, c, nil)
	if err != nil {
		return err
	}
	number := regexp.MustCompile(`^-[0-9]+$`)
	for i := range processes {
		rest, same := strings.CutPrefix(processes[i].AgentID, name)
		if same && (rest == "" || number.MatchString(rest)) && processes[i].State != view.Terminated {
			return fault.HomeInUse.New("pid %d has the home of %s, and runs", processes[i].PID, view.Escaped(name))
		}
	}
	return nil
}

func importHome(user, name string, files []string) (err error) {
	own, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("find your home: %w", err)
	}
	homes, err := homesOf(user)
	if err != nil {
		return err
	}
	home, err := homes.Open(schema.AgentName(name))
	if err != nil {
		return err
	}
	defer cli.CloseInto(&err, home)
	for _, file := range files {
		from := file
		if !filepath.IsAbs(from) {
			from = filepath.Join(own, file)
		}
		to, err := filepath.Rel(own, from)
		if err != nil || to == "." || !filepath.IsLocal(to) {
			return fmt.Errorf("%s is not in your home, %s", file, own)
		}
		if info, err := os.Stat(from); err != nil {
			return fmt.Errorf("import: %w", err)
		} else if !info.Mode().IsRegular() {
			return fmt.Errorf("import: %s is no regular file", from)
		}
		if err := home.Import(from, filepath.ToSlash(to)); err != nil {
			return err
		}
	}
	return nil
}
