package host

import "context"

// StartAt is Host.Start on a machine with other means.
func StartAt(ctx context.Context, h *Host, c Command, has Means) (*Process, error) {
	return h.startWith(ctx, c, has)
}

// MeansOf returns the means that a host has found.
func MeansOf(h *Host) Means { return h.means }

// Mark is a mark, for tests of its arithmetic.
type Mark = mark

// The arithmetic of marks.
var (
	NewMark    = newMark
	ReadMark   = readMark
	InstanceOf = instanceOf
)

// Limits returns the limits that store the mark.
func (m mark) Limits() (locks, rss uint64) { return m.limits() }

// MarkOf returns the mark of this agent's processes.
func MarkOf(p *Process) (locks, rss uint64) { return p.mark.limits() }

// NextLook returns the pause between two looks at an agent's part of the disk.
var NextLook = nextLook

// IsOwn reports whether a program is the one that runs as self.
func IsOwn(exe, self string) bool { return isOwn(exe, self) }
