package client

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// DefaultPatience bounds connecting and starting a daemon together (PROTOCOL 8).
const DefaultPatience = 5 * time.Second

// Options select a kernel. The zero Options select the user's own kernel, if it runs.
type Options struct {
	// RuntimeDir is the absolute path of the kernel's runtime directory; empty: RuntimeDir().
	RuntimeDir string
	// Spawn starts a daemon if none runs; nil: Dial returns a fault.DaemonNotRunning instead.
	Spawn *Command
	// Keys log in to a kernel that asks for identification.
	Keys Keys
	// Events uses events.sock: its lines may be longer, and its errors use the older dialect by default.
	Events bool
	// Origin is the origin of the operator's calls; empty: the kernel's own.
	Origin string
	// Kernel is the kernel of the cluster that answers, through the dialled one; empty: the dialled one. If it is set,
	// only queries can be made.
	Kernel string
	// Patience bounds Dial, not counting the time that signing takes; 0: DefaultPatience.
	Patience time.Duration
}

// Command is the command line of a daemon, such as pwos with --mode=daemon.
type Command struct {
	Path string   // absolute: the daemon works in another directory
	Args []string // without the program's own name
	Env  []string // NAME=value, added to the environment of this process
}

// RuntimeDir returns the runtime directory that the environment of this process names (PROTOCOL 1).
func RuntimeDir() string { return unixsock.RuntimeDir(os.Getenv, os.Getuid()) }

func (o Options) places() unixsock.Places {
	if o.RuntimeDir == "" {
		return unixsock.PlacesIn(RuntimeDir())
	}
	return unixsock.PlacesIn(o.RuntimeDir)
}

// socket returns the path of the socket to connect to.
func (o Options) socket() string {
	if o.Events {
		return o.places().EventsSocket
	}
	return o.places().KernelSocket
}

func (o Options) patience() time.Duration {
	if o.Patience == 0 {
		return DefaultPatience
	}
	return o.Patience
}

// spawnLock is the path of the lock that a client holds while it starts a daemon. The instance lock is the daemon's
// own.
func spawnLock(places unixsock.Places) string { return filepath.Join(places.Dir, "spawn.lock") }

// Keys configure the login (BRIDGE 4.2.5), and how to reach the user. The zero Keys use the keys of the ssh-agent, then
// the files that ssh uses.
type Keys struct {
	// Identity is the path of the only key to use, private or public; empty: PWOS_IDENTITY, or any key if that is not
	// set.
	Identity string
	// Passphrase asks the user for the passphrase of a key file; nil: there is no user.
	Passphrase access.Passphrase
	// Known stores the kernels' host keys; the zero value: KnownKernels().
	Known access.KnownKernels
	// Notice is called with a message for the user, such as that an unknown kernel is trusted from now on; nil: there is
	// no user.
	Notice func(string)
}

// KnownKernels returns the file of known kernels of this environment, next to the configuration. Its path is empty if
// there is no home directory.
func KnownKernels() access.KnownKernels {
	return access.KnownKernels{Path: besideConfig(unixsock.KnownKernels)}
}

// AuthorizedKeys returns the path of the keys that a kernel of this environment admits by default (PROTOCOL 1),
// empty if there is no home directory.
func AuthorizedKeys() string { return besideConfig(unixsock.AuthorizedKeys) }

// ConfigFile returns the path of the configuration of a kernel of this environment (PROTOCOL 1), empty if there is no
// home directory.
func ConfigFile() string { return besideConfig(func(config string) string { return config }) }

func besideConfig(place func(string) string) string {
	home, err := os.UserHomeDir()
	if err != nil && os.Getenv("PWOS_CONFIG") == "" && !filepath.IsAbs(os.Getenv("XDG_CONFIG_HOME")) {
		return ""
	}
	path, err := filepath.Abs(place(unixsock.ConfigFile(os.Getenv, home)))
	if err != nil { // the working directory was removed
		return ""
	}
	return path
}

func (k Keys) known() access.KnownKernels {
	if k.Known.Path == "" {
		return KnownKernels()
	}
	return k.Known
}

// Identities returns the sources in which keys are looked up.
func (k Keys) Identities() (*access.Identities, error) {
	i := &access.Identities{Identity: k.Identity, AgentSocket: os.Getenv("SSH_AUTH_SOCK"), Passphrase: k.Passphrase}
	if i.Identity == "" {
		i.Identity = os.Getenv("PWOS_IDENTITY")
	}
	if i.Identity != "" {
		path, err := filepath.Abs(i.Identity)
		if err != nil {
			return nil, fmt.Errorf("find identity: %w", err)
		}
		i.Identity = path
		return i, nil
	}
	if home, err := os.UserHomeDir(); err == nil {
		i.Files = access.DefaultKeyFiles(home)
	}
	return i, nil
}
