package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/schema/fault"
)

var (
	// ErrStopped means that the log can no longer be written, because an fsync failed. What Sync
	// covered before stays covered; only a new Open can continue. It wraps the cause.
	ErrStopped = errors.New("journal stopped")

	// ErrUncertain means that a write failed, and removing its remains failed too. The next Flush
	// removes them before it writes; a crash before then may bring the entries of the failed write
	// back.
	ErrUncertain = errors.New("what the failed write left could not be removed yet")

	// ErrClosed says that Close was called.
	ErrClosed = errors.New("journal closed")

	// ErrLocked says that another process, or another Log of this one, has the journal open.
	ErrLocked = errors.New("journal is in use by another kernel")
)

// A DamageError names a place where a journal is not what was written to it. It unwraps to fault.StateDamaged. A start
// refuses such a journal. It is a type of its own because reports list places, and callers add remedies.
type DamageError struct {
	File   string // path of the file
	Line   int64  // line in File, from 1; 0 if it was not counted
	Offset int64  // bytes from the start of File
	Seq    uint64 // the entry that is or should be there; 0 if unknown
	Reason string // what contradicts what
	Remedy string // what an operator can do about it; empty in a Report
}

func (e *DamageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "journal damaged: %s", e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, " line %d", e.Line)
	}
	fmt.Fprintf(&b, " (byte %d", e.Offset)
	if e.Seq > 0 {
		fmt.Fprintf(&b, ", entry %d", e.Seq)
	}
	fmt.Fprintf(&b, "): %s", e.Reason)
	if e.Remedy != "" {
		fmt.Fprintf(&b, "; %s", e.Remedy)
	}
	return b.String()
}

// Unwrap returns the id.
func (*DamageError) Unwrap() error { return fault.StateDamaged }

// Remedies, for the file that the error names.
const (
	remedySegment = `restore the file from a copy, or look at the whole extent with "pwos audit verify" first: ` +
		`what follows this place cannot be trusted without the copy`
	remedyLost = `restore the segment from a copy; to continue without the lost entries, move "head" and "checkpoints" ` +
		`out of the journal directory: they are the proof of the loss, keep them`
	remedyAnchor = `restore both files of the anchor from a copy; where the archived segments are at hand, move them back and the ` +
		`anchor out of the journal directory`
	remedyRedactions  = `the next start writes the file again, of what the entries of the journal say`
	remedyCheckpoints = `restore the file from a copy, or move it out of the journal directory: ` +
		`the next start begins a new one, but nothing vouches for the entries before it`
)
