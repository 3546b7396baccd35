package journal

import (
	"cmp"
	"fmt"
	"slices"
)

// A proof is a statement from outside the segments that an entry was on disk, with a hash.
type proof struct {
	Head

	source proofSource
	line   int64 // in the checkpoints file
}

type proofSource uint8

const (
	fromCheckpoint proofSource = iota
	fromMark
	fromOutside
	fromAnchor
)

func (p *proof) String() string {
	switch p.source {
	case fromMark:
		return "the head mark"
	case fromOutside:
		return "the checkpoint kept outside"
	case fromAnchor:
		return "the anchor of what is archived"
	default:
		return fmt.Sprintf("line %d of %s", p.line, checkpointsName)
	}
}

// proofs are compared while the chain is read, in ascending order.
type proofs struct {
	list   []proof
	next   int
	good   uint64 // the last entry that a proof was found to agree with
	signed uint64 // the same, for proofs with a signature
	checks int    // proofs of the checkpoints file that agree
}

func (ps *proofs) add(p proof) { ps.list = append(ps.list, p) }

func (ps *proofs) sort() {
	slices.SortStableFunc(ps.list, func(a, b proof) int { return cmp.Compare(a.Seq, b.Seq) })
}

// check compares h with every proof about its entry, and skips proofs of earlier entries. It
// returns the first contradiction.
func (ps *proofs) check(h Head) *proof {
	var against *proof
	for ; ps.next < len(ps.list) && ps.list[ps.next].Seq <= h.Seq; ps.next++ {
		p := &ps.list[ps.next]
		switch {
		case p.Seq < h.Seq:
		case p.Hash == h.Hash:
			ps.confirm(p)
		case against == nil:
			against = p
		}
	}
	return against
}

func (ps *proofs) confirm(p *proof) {
	ps.good = p.Seq
	if p.source != fromMark {
		ps.signed = p.Seq
	}
	if p.source == fromCheckpoint {
		ps.checks++
	}
}

// beyond returns the last proof of an entry after seq, or nil.
func (ps *proofs) beyond(seq uint64) *proof {
	if n := len(ps.list); n > 0 && ps.list[n-1].Seq > seq {
		return &ps.list[n-1]
	}
	return nil
}

func (ps *proofs) againstReason(p *proof) string {
	return fmt.Sprintf("entry %d is not the one that %s vouches for: an entry after %d and up to it was altered, "+
		"or the journal was cut before it and continued", p.Seq, p, ps.good)
}

func missingReason(p *proof) string {
	return fmt.Sprintf("the journal ends here, but %s vouches that entry %d was on disk", p, p.Seq)
}
