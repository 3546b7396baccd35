package host

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/promptware-os/pwos/internal/inside"
)

// A mark identifies the agent of a process. It is a number that every descendant inherits, and that no process without
// privileges can change into another agent's.
//
// It is stored in the hard values of two resource limits without effect since Linux 2.6, RLIMIT_LOCKS and RLIMIT_RSS: the
// first is base+mark, the second base+most-mark. A hard limit survives fork, setsid, execve and the death of every
// ancestor. Without CAP_SYS_RESOURCE, which no agent has, it can only be lowered. Lowering either limit breaks the sum, so
// no agent's pair can become another agent's, or that of a process without a mark. A process that breaks its mark is killed
// when it is found: no other program has a reason to lower RLIMIT_LOCKS.
type mark uint64

const (
	markBits         = 61
	instanceBits     = 24
	incarnationBits  = 15
	sequenceBits     = markBits - instanceBits - incarnationBits
	mostMark         = 1<<markBits - 1
	mostSequence     = 1<<sequenceBits - 1
	mostIncarnation  = 1<<incarnationBits - 1
	markBase         = inside.MarkBase
	instanceShift    = markBits - instanceBits
	incarnationShift = sequenceBits
)

// instanceOf returns the number of a kernel, which stays the same across its restarts.
func instanceOf(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:]) >> (64 - instanceBits)
}

// newMark returns the mark of the agent with a sequence number in one incarnation of a kernel.
func newMark(instance, incarnation, sequence uint64) mark {
	return mark(instance<<instanceShift | incarnation<<incarnationShift | sequence&mostSequence)
}

// instance returns the kernel that the mark belongs to.
func (m mark) instance() uint64 { return uint64(m) >> instanceShift }

// incarnation returns the run of the kernel that the mark belongs to.
func (m mark) incarnation() uint64 { return uint64(m) >> incarnationShift & mostIncarnation }
