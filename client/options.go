package client

import (
	"os"
	"path/filepath"
	"time"

	"github.com/promptware-os/pwos/transport/unixsock"
)

// DefaultPatience bounds connecting and starting a daemon, both together (PROTOCOL 8).
const DefaultPatience = 5 * time.Second

// Options say which kernel to talk to. The zero Options mean the user's own, if it runs.
type Options struct {
	// RuntimeDir is the absolute path of the kernel's runtime directory; empty: RuntimeDir().
	RuntimeDir string
	// Spawn starts a daemon where none runs; nil: Dial returns a fault.DaemonNotRunning instead.
	Spawn *Command
	// Keys say what to show a kernel that wants to know who connects.
	Keys Keys
	// Events has the connection made by events.sock: its lines may be longer, and what is no frame is answered in its dialect.
	Events bool
	// Origin is whose stored things the calls of the operator are about; empty: the kernel's own origin.
	Origin string
	// Patience bounds the whole of Dial, but for the time that whoever holds the key takes to sign; 0: DefaultPatience.
	Patience time.Duration
}

// Command is the program that becomes a daemon, such as pwos with --mode=daemon.
type Command struct {
	Path string   // absolute: the daemon works in another directory
	Args []string // without the program's own name
	Env  []string // NAME=value, on top of our own environment
}

// RuntimeDir returns the runtime directory that the environment of this process names (PROTOCOL 1).
func RuntimeDir() string { return unixsock.RuntimeDir(os.Getenv, os.Getuid()) }

func (o Options) places() unixsock.Places {
	if o.RuntimeDir == "" {
		return unixsock.PlacesIn(RuntimeDir())
	}
	return unixsock.PlacesIn(o.RuntimeDir)
}

// socket is the one to connect to.
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

// spawnLock is held by the one client that is starting a daemon. It is not the instance lock: that one is the daemon's.
func spawnLock(places unixsock.Places) string { return filepath.Join(places.Dir, "spawn.lock") }
