package client

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/promptware-os/pwos/access"
)

// DefaultPatience bounds connecting and starting a daemon together (PROTOCOL 8).
const DefaultPatience = 5 * time.Second

// Options select a kernel. The zero Options select the user's own kernel, if it runs.
type Options struct {
	// RuntimeDir is the absolute path of the kernel's runtime directory; empty: RuntimeDir().
	RuntimeDir string
	// At is the address of a kernel on another machine, tls://HOST:PORT, in place of RuntimeDir, Spawn and Events; empty: it
	// is on this one.
	At string
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

// route returns the way to the kernel.
func (o Options) route() route {
	if o.At != "" {
		return address(o.At)
	}
	if o.Events {
		return socket(o.places().EventsSocket)
	}
	return socket(o.places().KernelSocket)
}

func (o Options) patience() time.Duration {
	if o.Patience == 0 {
		return DefaultPatience
	}
	return o.Patience
}

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
