package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/bind"
	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/host/programs"
	"github.com/promptware-os/pwos/internal/agenthome"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// confine adds the kernel's directories, as the program sees them, and the configured sandbox to a program's command.
func (d *Daemon) confine(c *host.Command, p *schema.Program) error {
	if err := d.runAs(c, p.User); err != nil {
		return err
	}
	if err := d.reveal(c, p.Secrets); err != nil {
		return err
	}
	d.bar(c)
	c.Log.Shown = d.config.Record.Terminals == config.On
	d.watchExecs(c)
	c.ShowProgram = d.isOperators(c.PID)
	given := homes(d.config.StateDir, c.Write)
	if err := d.renewHome(c, given); err != nil {
		return err
	}
	for _, home := range given {
		if err := programs.GiveHome(home.Target, c.User); err != nil {
			return err
		}
	}
	for _, copied := range c.Copies {
		if strings.HasPrefix(copied, filepath.Join(real(d.config.StateDir), "git")+"/") { // the client's, of this user
			if err := programs.GiveHome(filepath.Dir(copied), c.User); err != nil {
				return err
			}
		}
	}
	for _, at := range c.Places { // made by the kernel
		if err := c.User.Own(at.Target); err != nil {
			return err
		}
	}
	c.Places = append(c.Places, given...)
	if c.Net == host.NetKernel || c.Net == "" && c.Sandbox.Network() == host.NetKernel {
		if err := d.connect(c, p); err != nil {
			return err
		}
	}
	if err := d.review(c, p); err != nil {
		return err
	}
	place := bind.Place{Dir: c.Dir, Roots: roots(c)}
	if r := c.Review; r != nil {
		place.Review = bind.Review{Of: r.Target, Copy: r.Source}
	}
	d.writable.Store(c.PID, place)
	places := unixsock.PlacesIn(d.config.RuntimeDir)
	if c.Stdio != "" {
		c.Stdio = filepath.Join(places.Dir, c.Stdio)
	}
	if _, given := c.Env["PWOS_RUNTIME_DIR"]; !given { // for a client inside, which would look for another kernel
		env := map[string]string{"PWOS_RUNTIME_DIR": places.Dir}
		maps.Copy(env, c.Env)
		c.Env = env
	}
	c.Sockets = host.Place{Source: insideDir(places), Target: places.Dir}
	c.Places = append(c.Places, c.Sockets)
	if err := d.share(c, places.Blobs); err != nil {
		return err
	}
	d.cover(c, p)
	private := []string{c.Tmp}
	if home := agenthome.Store(filepath.Join(real(d.config.StateDir), "homes")).Around(c.Env["HOME"]); home != "" {
		private = append(private, home)
	}
	c.Limits.DiskBytes = d.config.Agents.DiskBytes
	c.Used = func(done <-chan struct{}) (used int64) {
		for _, dir := range private {
			used += agenthome.Size(dir, done)
		}
		return used
	}
	return nil
}

// bar adds to a command what every program may read, what is hidden from it, and what is the kernel's own.
func (d *Daemon) bar(c *host.Command) {
	home, _ := os.UserHomeDir() // "" means that no home is there
	for _, path := range d.config.Agents.Read {
		c.Read = append(c.Read, real(expand(path, home)))
	}
	for _, path := range d.config.Agents.Hide {
		c.Hide = append(c.Hide, expand(path, home))
		if c.User != nil && c.User.Home != "" {
			c.Hide = append(c.Hide, expand(path, c.User.Home))
		}
	}
	c.Private = private(d.config)
}

// renewing starts a host that renews its login, as the kernel's user.
func (d *Daemon) renewing(ctx context.Context, c host.Command) (*host.Process, error) {
	d.bar(&c)
	h, err := d.programs.Host()
	if err != nil {
		return nil, err
	}
	return h.Start(ctx, c)
}

// runAs sets the user that a program runs as. Another than the kernel's cannot enter the kernel's directories, so that what is the
// program's there has to be mounted elsewhere.
func (d *Daemon) runAs(c *host.Command, named *string) (err error) {
	if c.User, err = d.programs.UserOf(named); err != nil || c.User == nil {
		return err
	}
	has := d.programs.Means
	if c.Sandbox != host.SandboxOff && has.Mounts {
		if has.User {
			return fmt.Errorf("this machine cannot run a confined program as user %d: the kernel has no right to mount (CAP_SYS_ADMIN): run it as user 0, with --user 0, or not confined, with --sandbox off", c.User.UID)
		}
		return d.doors.Open()
	}
	state := real(d.config.StateDir)
	for flag, path := range map[string]string{"--home": cmp.Or(c.Env["HOME"], c.Dir), "--dir": c.Dir} {
		if path == state || strings.HasPrefix(real(path), state+"/") {
			return fmt.Errorf("user %d cannot enter the kernel's directory, where a directory of the program would be: name one that the user may enter with %s, or have it run as root with --user 0", c.User.UID, flag)
		}
	}
	c.Tmp = filepath.Join("/tmp", "pwos-"+rand.Text()) // TMPDIR may be this user's alone
	return d.doors.Open()
}

// share gives a program its part of the blob directory. It needs none if it is not confined.
func (d *Daemon) share(c *host.Command, target string) error {
	if c.Sandbox == host.SandboxOff {
		return nil
	}
	user, group := -1, -1
	if u := c.User; u != nil {
		user, group = u.UID, u.GID
	}
	c.Share = &host.Share{Target: target, Bytes: d.config.Blobs.Share, Adopt: func(root *os.Root) error { return d.blobs.Adopt(c.PID, root, user, group) }}
	if d.programs.Means.Mounts {
		return nil
	}
	blobs, err := d.blobs.Folder(c.PID, user, group)
	if err != nil {
		return fmt.Errorf("make blob directory of agent %d: %w", c.PID, err)
	}
	c.Share.Source = blobs
	return nil
}

// homes returns the agents' home directories among the paths that a program may write. They are in the state directory,
// which is otherwise hidden.
func homes(state string, write []string) (places []host.Place) {
	all := filepath.Join(real(state), "homes") + "/"
	for _, path := range write {
		if strings.HasPrefix(path, all) {
			places = append(places, host.Place{Target: path, Write: true})
		}
	}
	return places
}

// renewHome renews the home of an agent that the operator has started, if it may write there: what it has left for its next start is
// removed. A child in the home of its parent begins with what the parent has.
func (d *Daemon) renewHome(c *host.Command, given []host.Place) error {
	home := c.Env["HOME"]
	process := d.state.Processes.Processes().Process(c.PID)
	writes := c.Sandbox == host.SandboxOff || slices.ContainsFunc(given, func(at host.Place) bool { return at.Target == home })
	if process == nil || process.ParentPID != 0 || !writes {
		return nil
	}
	return agenthome.Store(filepath.Join(real(d.config.StateDir), "homes")).Renew(home, c.Env["PATH"])
}

// secretTime bounds the time to open a program's secrets.
const secretTime = 10 * time.Second

// reveal puts the opened variables and secrets of a program into its environment.
func (d *Daemon) reveal(c *host.Command, secrets map[string]string) (err error) {
	if len(secrets)+len(c.Env) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	if c.Env, err = d.variables.OpenAll(c.Env); err != nil {
		return err
	}
	for name, key := range secrets {
		secret, err := d.networks.Vault.Open(ctx, key)
		if err != nil {
			return fmt.Errorf("open %s for the variable %s: %w", key, name, err)
		}
		c.Env[name] = secret
	}
	return nil
}

// isOperators reports whether the operator has named the program of a process: for the process itself, or for an ancestor,
// if every process in between runs the same program.
func (d *Daemon) isOperators(pid int64) bool {
	processes := d.state.Processes.Processes()
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

// connect gives a program a network that the kernel serves. The spawner's variables take precedence.
func (d *Daemon) connect(c *host.Command, p *schema.Program) error {
	logins, err := d.variables.OpenAll(p.Logins)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	needs := d.networks.Needs(ctx, c.PID, logins, host.UpstreamURL)
	own := egress.Own{Logins: needs.Logins}
	if p.Upstream != nil {
		u, err := d.networks.Own(c.AgentID, p.Upstream)
		if err != nil {
			return fmt.Errorf("make upstream: %w", err)
		}
		own.Upstreams = append(own.Upstreams, u)
		needs.Env["PWOS_UPSTREAM"] = host.UpstreamURL(len(needs.Upstreams)) + u.URL.RequestURI()
		needs.Upstreams = append(needs.Upstreams, c.AgentID)
	}
	c.Ports, c.Locals, c.Upstreams = needs.Ports, needs.Locals, needs.Upstreams
	c.Publishes = p.Publish != nil
	publish := p.Publish // not the rest of it: the network outlives the start
	c.Network = func(p *host.Process, s *host.Sockets) (err error) {
		if own.Published, err = d.networks.Listen(publish); err == nil {
			d.programs.Watch(p, d.networks.Serve(p.PID(), egress.Sockets(*s), own))
		}
		return err
	}
	maps.Copy(needs.Env, c.Env)
	c.Env = needs.Env
	return nil
}

// real resolves the symbolic links in a configured path, if it exists.
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

// private returns the paths that are hidden from every program: state, runtime directory, configuration and
// keys. A configuration in its own directory is hidden with the directory, otherwise by file names.
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

// insideDir returns the directory that programs see as the runtime directory. It has only the sockets.
func insideDir(places unixsock.Places) string { return filepath.Join(places.Dir, "inside") }

// roots returns the directories that a program may write.
func roots(c *host.Command) []string {
	if c.Sandbox == host.SandboxOff {
		return []string{"/"}
	}
	return append([]string{c.Dir}, c.Write...)
}

// binds implements actors.Config.Binds. A process that the kernel does not host runs as the user: it may write anywhere.
func (d *Daemon) binds(pid int64, in *schema.ToolUseInput) schema.Value {
	if pid == kernel.Operator || !d.policies.Asks() {
		return nil
	}
	at := bind.Place{Roots: []string{"/"}}
	if known, ok := d.writable.Load(pid); ok {
		at = known.(bind.Place)
	}
	at.Dir = cmp.Or(in.Cwd, at.Dir)
	files := bind.Tool(at, in)
	if files == nil {
		return nil
	}
	value, err := schema.Marshal(files)
	if err != nil {
		d.log.Error("files of a command are not bound", "pid", pid, "error", err)
		return schema.Value(`{"unbound":"the kernel could not read them"}`)
	}
	return value
}
