package host

import "context"

// StartAt is Host.Start on a machine with other means.
func StartAt(ctx context.Context, h *Host, c Command, has Means) (*Process, error) {
	return h.startWith(ctx, c, has)
}

// MeansOf are the means that a host has found.
func MeansOf(h *Host) Means { return h.means }

// Mark is a mark, for tests of its arithmetic.
type Mark = mark

// The arithmetic of marks.
var (
	NewMark    = newMark
	ReadMark   = readMark
	InstanceOf = instanceOf
)

// Limits returns what the mark is kept in.
func (m mark) Limits() (locks, rss uint64) { return m.limits() }

// MarkOf is the mark that a process of this agent wears.
func MarkOf(p *Process) (locks, rss uint64) { return p.mark.limits() }
