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

// SandboxLevel returns what a default sandbox enforces on this machine: "landlock:v7", or "none".
func SandboxLevel() string { return levelOf(landlockABI()) }

// decide returns the level that a mode comes to on this machine, or an error that wraps ErrSandbox.
func (m Mode) decide(abi int) (string, error) {
	switch {
	case m == SandboxOff:
		return levelOff, nil
	case m == SandboxStrict && abi < abiTruncate:
		return "", fmt.Errorf("%w: strict needs landlock:v%d or later, and this machine has %s", ErrSandbox, abiTruncate, levelOf(abi))
	}
	return levelOf(abi), nil
}

// Gaps lists, in words for the operator, what a default sandbox does not keep a program from on this machine.
func Gaps() []string { return gaps(landlockABI()) }
