package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// look finds out what this machine has to confine programs with, and whom they run as.
func (p *programs) look(cfg *config.Config) (err error) {
	switch p.means, err = host.Probe(); {
	case errors.Is(err, host.ErrUnsupported): // such a kernel hosts nothing
		p.means = host.Means{}
	case err != nil:
		return err
	}
	if cfg.Agents.User == "" {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("configuration: agents.user: only a kernel that is user 0 can run agents as %s: leave it out, or start the kernel as root", cfg.Agents.User)
	}
	p.user, err = lookUp(cfg.Agents.User)
	return err
}

// lookUp finds a user of the system.
func lookUp(name string) (*host.User, error) {
	wrong := func(err error) error { return fmt.Errorf("configuration: agents.user: %w", err) }
	u, err := user.Lookup(name)
	if err != nil {
		return nil, wrong(err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, wrong(err)
	}
	found := &host.User{}
	if found.UID, err = strconv.Atoi(u.Uid); err != nil {
		return nil, wrong(err)
	}
	if found.GID, err = strconv.Atoi(u.Gid); err != nil {
		return nil, wrong(err)
	}
	for _, text := range groups {
		group, err := strconv.Atoi(text)
		if err != nil {
			return nil, wrong(err)
		}
		found.Groups = append(found.Groups, group)
	}
	if found.UID == 0 {
		return nil, wrong(fmt.Errorf("%s is user 0, as the kernel is: name another", name))
	}
	return found, nil
}

// confine adds to a program's command what it may see of the kernel's own places, and what the configuration says.
func (d *Daemon) confine(c *host.Command, p *schema.Program) error {
	if err := d.reveal(c, p.Secrets); err != nil {
		return err
	}
	home, _ := os.UserHomeDir() // without one nothing lies in it
	for _, path := range d.config.Agents.Read {
		c.Read = append(c.Read, real(expand(path, home)))
	}
	for _, path := range d.config.Agents.Hide {
		c.Hide = append(c.Hide, expand(path, home))
	}
	c.Private = private(d.config)
	c.ShowProgram = d.operators(c.PID)
	given := homes(d.config.StateDir, c.Write)
	if u := d.programs.user; u != nil {
		for _, home := range given {
			if err := giveHome(home.Target, u); err != nil {
				return err
			}
		}
	}
	c.Places = append(c.Places, given...)
	if d.programs.user != nil {
		if err := d.give(c); err != nil {
			return err
		}
	}
	if c.Net == host.NetKernel || c.Net == "" && c.Sandbox.Network() == host.NetKernel {
		if err := d.connect(c, p.Upstream); err != nil {
			return err
		}
	}
	places := unixsock.PlacesIn(d.config.RuntimeDir)
	user, group := -1, -1
	if u := d.programs.user; u != nil {
		user, group = u.UID, u.GID
	}
	blobs, err := d.blobs.Folder(c.PID, user, group)
	if err != nil {
		return fmt.Errorf("make blob directory of agent %d: %w", c.PID, err)
	}
	c.Places = append(c.Places, host.Place{Source: insideDir(places), Target: places.Dir}, host.Place{Source: blobs, Target: places.Blobs, Write: true})
	return nil
}

// homes are the homes of agents among the paths that a program may write: they lie in the state directory, and what is there is
// hidden unless the kernel gives it.
func homes(state string, write []string) (places []host.Place) {
	all := filepath.Join(real(state), "homes") + "/"
	for _, path := range write {
		if strings.HasPrefix(path, all) {
			places = append(places, host.Place{Target: path, Write: true})
		}
	}
	return places
}

// secretTime is how long the secrets of a program may take to be opened.
const secretTime = 10 * time.Second

// reveal opens the secrets of a program into its environment.
func (d *Daemon) reveal(c *host.Command, secrets map[string]string) error {
	if len(secrets) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	c.Env = maps.Clone(c.Env)
	if c.Env == nil {
		c.Env = make(map[string]string)
	}
	for name, key := range secrets {
		secret, err := d.networks.open(ctx, key)
		if err != nil {
			return fmt.Errorf("open %s for the variable %s: %w", key, name, err)
		}
		c.Env[name] = secret
	}
	return nil
}

// giveHome changes the owner of the files that this process's user has made in a home to the programs' user. A file with a second
// hard link keeps its owner: the other name may be in somebody else's directory.
func giveHome(dir string, u *host.User) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open home: %w", errors.Unwrap(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = root.Lstat(path)
		}
		if err == nil {
			own, ok := info.Sys().(*syscall.Stat_t)
			if ok && int(own.Uid) == os.Geteuid() && (info.IsDir() || own.Nlink == 1) {
				err = root.Lchown(path, u.UID, u.GID)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // which another program of the home's may have removed
			return fmt.Errorf("give home to user %d: %w", u.UID, errors.Unwrap(err))
		}
		return nil
	})
}

// operators reports whether the operator has named a process's program: for itself, or for an ancestor from which each process
// down to it has run the same.
func (d *Daemon) operators(pid int64) bool {
	processes := d.state.processes.Processes()
	for p := processes.Process(pid); p != nil; {
		if p.ParentPID == 0 {
			return true
		}
		parent := processes.Process(p.ParentPID)
		if parent == nil || len(parent.Command) == 0 || len(p.Command) == 0 || parent.Command[0] != p.Command[0] {
			return false
		}
		p = parent
	}
	return false
}

// give makes the directory that the kernel has made for a program that program's user's own.
func (d *Daemon) give(c *host.Command) error {
	for _, at := range c.Places {
		if err := os.Lchown(at.Target, d.programs.user.UID, d.programs.user.GID); err != nil {
			return fmt.Errorf("give directory to user %d: %w", d.programs.user.UID, errors.Unwrap(err))
		}
	}
	return nil
}

// connect gives a program a network that the kernel serves. What the spawner says of a variable stands.
func (d *Daemon) connect(c *host.Command, upstream *schema.ProgramUpstream) error {
	needs := d.networks.needs(c.PID, host.UpstreamURL)
	var own []*egress.Upstream
	if upstream != nil {
		u, err := d.networks.own(c.AgentID, upstream)
		if err != nil {
			return fmt.Errorf("make upstream: %w", err)
		}
		own = append(own, u)
		needs.env["PWOS_UPSTREAM"] = host.UpstreamURL(len(needs.upstreams)) + u.URL.RequestURI()
		needs.upstreams = append(needs.upstreams, c.AgentID)
	}
	c.Ports, c.Upstreams = needs.ports, needs.upstreams
	c.Network = func(p *host.Process, s *host.Sockets) error { return d.serveNetwork(p, s, own...) }
	maps.Copy(needs.env, c.Env)
	c.Env = needs.env
	return nil
}

// serveNetwork serves the network of a program until nothing of the program is left.
func (d *Daemon) serveNetwork(p *host.Process, s *host.Sockets, own ...*egress.Upstream) error {
	stop := d.networks.serve(p.PID(), egress.Sockets(*s), own...)
	d.programs.watched.Go(func() {
		<-p.Done()
		stop()
	})
	return nil
}

// real follows the symbolic links in a path of the configuration, where there is something at it.
func real(path string) string {
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		return followed
	}
	return path
}

func expand(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return filepath.Clean(path)
}

// private is what is hidden from every program: state, runtime directory, configuration and keys. A configuration that lies in
// a directory of its own is hidden with that, elsewhere by its names.
func private(cfg config.Config) []string {
	list := append(trusted(cfg), cfg.StateDir, cfg.RuntimeDir)
	if filepath.IsAbs(cfg.File) {
		dir := filepath.Dir(cfg.File)
		if filepath.Base(dir) == "pwos" {
			list = append(list, dir)
		}
		for _, name := range []string{"known_kernels", "policy.cedar", "policy.d", "profiles"} {
			list = append(list, filepath.Join(dir, name))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// insideDir is the directory that stands in the runtime directory's place for programs: it holds the sockets and nothing else.
func insideDir(places unixsock.Places) string { return filepath.Join(places.Dir, "inside") }

// share gives the sockets their second name in insideDir, or a new one where they were bound again, and an empty
// directory for blobs.
func (s *sockets) share() error {
	dir := s.inside
	if err := os.MkdirAll(filepath.Join(dir, "blobs"), 0o755); err != nil {
		return fmt.Errorf("share sockets: %w", err)
	}
	if s.all { // programs run as another user, whom the runtime directory keeps out from everywhere else
		if err := os.Chmod(dir, 0o755); err != nil {
			return fmt.Errorf("share sockets: %w", err)
		}
	}
	for _, path := range s.paths {
		name := filepath.Join(dir, filepath.Base(path))
		own, err := os.Lstat(path)
		if err != nil {
			continue // it was removed, and is bound again first
		}
		if there, err := os.Lstat(name); err == nil && os.SameFile(own, there) {
			continue
		}
		if s.all {
			err = os.Chmod(path, 0o666)
		}
		if err = errors.Join(err, os.RemoveAll(name), os.Link(path, name)); err != nil {
			return fmt.Errorf("share sockets: %w", err)
		}
	}
	return nil
}
