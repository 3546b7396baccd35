package confine

import (
	"errors"
	"fmt"
)

// ErrRefused says that a program cannot be confined as requested. The message says what is missing or wrong.
var ErrRefused = errors.New("cannot confine the program")

// The minimum Landlock ABI for each right.
const (
	abiRename   = 2 // earlier versions refuse every rename between directories
	abiTruncate = 3 // with earlier versions a file outside could be truncated
	abiTCP      = 4
	abiDevices  = 5
	abiScopes   = 6 // signals, abstract sockets
	abiUnix     = 9 // Unix sockets with a path
)

// The levels of confinement.
const (
	Default = "default"
	Strict  = "strict"
	Off     = "off"
)

// The networks of a program.
const (
	NetNone   = "none"   // no network
	NetKernel = "kernel" // through the kernel only
	NetOpen   = "open"   // as the kernel's user
)

// Means are a machine's means to confine programs.
type Means struct {
	ABI     int  // level of Landlock, or 0
	Filter  bool // seccomp
	Notify  bool // its notifications, and what the daemon needs to answer those of connect
	Mounts  bool // mount namespaces with tmpfs and read-only trees
	Overlay bool // overlay file systems, to hide files by name
	Network bool // network namespaces with a separate address
	Link    bool // a second one for the relays, so that the program may listen on every port
	IPv6    bool // which networks have
	IPC     bool // IPC namespaces
	Ptys    bool // pseudo-terminals of its own in a mount namespace
	PIDs    bool // PID namespaces with a /proc, in a mount namespace
	User    bool // the namespaces must be in a user namespace, since this process has no privilege to create them
}

// Level names the means that are used: "namespaces+landlock:v7", "landlock:v7", "none".
func (m Means) Level() string {
	switch {
	case m.ABI < 1 && m.Mounts:
		return "namespaces"
	case m.ABI < 1:
		return "none"
	case m.Mounts:
		return fmt.Sprintf("namespaces+landlock:v%d", m.ABI)
	}
	return fmt.Sprintf("landlock:v%d", m.ABI)
}

// hides reports whether the kernel's state and keys can be hidden.
func (m Means) hides() bool { return m.Mounts || m.ABI > 0 }

// mediates reports whether a program can be kept from the Unix sockets of other programs wherever they are.
func (m Means) mediates() bool { return m.ABI >= abiUnix || m.Filter && m.Notify }

// missing lists what a strict sandbox lacks.
func (m Means) missing(net string) (list []string) {
	for _, need := range []struct {
		has  bool
		text string
	}{
		{m.ABI >= abiTruncate, fmt.Sprintf("Landlock v%d or later (Linux 6.2)", abiTruncate)},
		{m.Filter, "a filter of system calls (seccomp)"},
		{m.Mounts, "mount namespaces"},
		{m.Overlay, "overlay file systems in them"},
		{m.IPC, "IPC namespaces"},
		{m.PIDs, "PID namespaces with a /proc of their own"},
		{m.Network || net == NetOpen, "network namespaces"},
	} {
		if !need.has {
			list = append(list, need.text)
		}
	}
	return list
}
