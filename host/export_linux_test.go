package host

import "context"

// DecideSandbox is Mode.decide, for means that this machine does not have.
func DecideSandbox(m Mode, abi int, filter bool) (string, error) {
	return m.decide(means{abi, filter})
}

// GapsAt is gaps, for means that this machine does not have.
func GapsAt(abi int, filter bool) []string { return gaps(means{abi, filter}) }

// FilterOf is the filter for a machine of another kind.
var FilterOf = filterOf

// StartAt is Host.Start on a kernel of another level.
func StartAt(ctx context.Context, h *Host, c Command, abi int) (*Process, error) {
	return h.start(ctx, c, means{abi, canFilter()})
}

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
