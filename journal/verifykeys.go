package journal

import (
	"cmp"
	"slices"
)

// namedKey is a host key that an entry names.
type namedKey struct {
	seq uint64
	key string // canonical
}

// otherCheck is a checkpoint of a key that the caller does not trust by itself.
type otherCheck struct {
	Checkpoint

	place   *DamageError // the finding that it is unless it is accepted
	matches bool         // its entry was found to be the one that it is about
}

// note looks for what an entry says of host keys, and for checkpoints about it.
func (v *verifier) note(rec *Record, h Head) {
	for _, o := range v.others[h.Seq] {
		o.matches = o.Hash == h.Hash
	}
	if v.names == nil {
		return
	}
	if name := v.names(rec); name != "" {
		if _, key, err := parseKey(name); err == nil {
			v.named = append(v.named, namedKey{h.Seq, key})
		}
	}
}

// judgeOthers accepts the checkpoints whose key the record names as the host key of that time, as far as a trusted key
// vouches for the record, and reports all others.
func (v *verifier) judgeOthers() {
	for _, at := range v.others {
		for _, o := range at {
			if n, ok := v.keyAt(o.Seq); ok && o.matches && n.key == o.Key && max(n.seq, o.Seq) <= v.proofs.signed {
				v.proofs.checks++
				continue
			}
			v.checks = append(v.checks, o.place)
		}
	}
	slices.SortStableFunc(v.checks, func(a, b *DamageError) int { return cmp.Compare(a.Offset, b.Offset) })
}

// keyAt returns the naming of the host key that an entry fell under. Entries before the first naming are of the key that it
// names: kernels had one before they named it.
func (v *verifier) keyAt(seq uint64) (namedKey, bool) {
	i, found := slices.BinarySearchFunc(v.named, seq, func(n namedKey, seq uint64) int { return cmp.Compare(n.seq, seq) })
	if !found {
		i = max(0, i-1)
	}
	if len(v.named) == 0 {
		return namedKey{}, false
	}
	return v.named[i], true
}
