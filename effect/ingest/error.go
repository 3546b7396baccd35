package ingest

import (
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/rootfs"
)

// Why a resource is not ingested. Fetch also returns the errors of uri and rootfs, and what the web source returned.
var (
	// ErrNotFound: there is nothing of that name. A web source returns it too.
	ErrNotFound = rootfs.ErrNotFound
	// ErrNoWeb: the name means something on the web, and there is no way there.
	ErrNoWeb = errors.New("nothing is fetched from the web here")
	// ErrIntegrity: the bits are not those that the integrity names, or it names none.
	ErrIntegrity = errors.New("integrity does not hold")
	// ErrSignature: the signature beside the resource is not one of it, or not one at all.
	ErrSignature = errors.New("the signature beside the resource does not hold")
	// ErrUnproven: nothing answers for the resource, and the policy wants something to.
	ErrUnproven = errors.New("nothing answers for the resource")
	// ErrText: the resource is no text in UTF-8.
	ErrText = errors.New("the resource is no text in UTF-8")
	// ErrFrontMatter: the front matter cannot be read, or a member has the wrong type.
	ErrFrontMatter = errors.New("front matter is not valid")
)

// Phase is a step of the pipeline (ABI 8).
type Phase string

// The phases, in their order.
const (
	Fetch    Phase = "fetch"
	Validate Phase = "validate"
	Load     Phase = "load"
	Adopt    Phase = "adopt"
)

// PhaseError is a phase that failed. Nothing after it ran.
type PhaseError struct {
	Phase Phase
	Err   error
}

// Error returns the phase and what failed in it.
func (e *PhaseError) Error() string { return fmt.Sprintf("%s: %v", e.Phase, e.Err) }

// Unwrap returns what failed.
func (e *PhaseError) Unwrap() error { return e.Err }
