package host

import (
	"crypto/sha256"
	"encoding/binary"
)

// A mark tells which agent a process belongs to, whatever that process does to hide it. It is a number that every
// descendant inherits and no process without privileges can change into another agent's.
//
// It is kept in the hard values of two resource limits that have had no effect since Linux 2.6, RLIMIT_LOCKS and
// RLIMIT_RSS: the one holds base+mark, the other base+most-mark. A hard limit survives fork, setsid, execve and the death of
// every ancestor, and can only be lowered, CAP_SYS_RESOURCE apart, which no agent has. Lowering either spoils the sum, so
// that from one agent's pair no other agent's can be reached, nor that of a process without a mark. Whoever spoils its mark
// is killed on sight: no program but ours has a reason to lower RLIMIT_LOCKS.
type mark uint64

const (
	markBits         = 61
	instanceBits     = 24
	incarnationBits  = 15
	sequenceBits     = markBits - instanceBits - incarnationBits
	mostMark         = 1<<markBits - 1
	mostSequence     = 1<<sequenceBits - 1
	mostIncarnation  = 1<<incarnationBits - 1
	markBase         = 1 << 62 // far above what the limits could mean, far below infinity
	instanceShift    = markBits - instanceBits
	incarnationShift = sequenceBits
)

// instanceOf names a kernel by what stays the same over its restarts.
func instanceOf(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:]) >> (64 - instanceBits)
}

// newMark is the mark of the agent with a sequence number in one incarnation of a kernel.
func newMark(instance, incarnation, sequence uint64) mark {
	return mark(instance<<instanceShift | incarnation<<incarnationShift | sequence&mostSequence)
}

// instance returns whose the mark is.
func (m mark) instance() uint64 { return uint64(m) >> instanceShift }

// incarnation returns which of the kernel's lives the mark is from.
func (m mark) incarnation() uint64 { return uint64(m) >> incarnationShift & mostIncarnation }
