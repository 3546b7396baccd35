package kernel

import "github.com/promptware-os/pwos/schema/fault"

// Names is a view of what can be named (PROTOCOL 5, FileSystem). It never changes, opens nothing and never waits.
type Names interface {
	// Resolve returns the canonical form of what name means beside base, which is a name itself, "" where there is none. A name
	// that means nothing is an InvalidInput; one that nothing holds is a NotFound.
	Resolve(name, base string) (string, *fault.Fault)

	// Base returns what names of a process stand beside that gives no base: the identity that it has adopted in its origin, ""
	// where there is none.
	Base(pid int64, origin string) string
}
