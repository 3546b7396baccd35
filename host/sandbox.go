package host

import "fmt"

// The least Landlock ABI that each promise needs.
const (
	abiRename   = 2 // before it, renaming from one directory to another is refused everywhere
	abiTruncate = 3 // before it, a file outside could be emptied, so strict is refused
	abiDevices  = 5
	abiScopes   = 6 // signals, abstract sockets
)

// Levels of confinement that are no Landlock level.
const (
	levelNone = "none" // the system cannot confine
	levelOff  = "off"  // it was not asked to
)

// levelOf names an ABI of Landlock.
func levelOf(abi int) string {
	if abi < 1 {
		return levelNone
	}
	return fmt.Sprintf("landlock:v%d", abi)
}

// means are what a machine has to confine programs with.
type means struct {
	abi    int  // level of Landlock; 0: none
	filter bool // of system calls
}

// SandboxLevel returns what a default sandbox enforces on this machine: "landlock:v7", or "none".
func SandboxLevel() string { return levelOf(machine().abi) }

// decide returns the level that a mode comes to on a machine, or an error that wraps ErrSandbox.
func (m Mode) decide(has means) (string, error) {
	switch {
	case m == SandboxOff:
		return levelOff, nil
	case m == SandboxStrict && has.abi < abiTruncate:
		return "", fmt.Errorf("%w: strict needs landlock:v%d or later, and this machine has %s", ErrSandbox, abiTruncate, levelOf(has.abi))
	case m == SandboxStrict && !has.filter:
		return "", fmt.Errorf("%w: strict needs a filter of system calls (seccomp), and this machine has none", ErrSandbox)
	}
	return levelOf(has.abi), nil
}

// Gaps lists, in words for the operator, what a default sandbox does not keep a program from on this machine.
func Gaps() []string { return gaps(machine()) }
