package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// segmentAt is a segment of one of the directories.
type segmentAt struct {
	first uint64
	dir   string
}

// readSegments lists the segments once: one that a kernel makes meanwhile is not looked at, and the one before it counts
// as the last.
func (v *verifier) readSegments() error {
	var all []segmentAt
	base := map[string]*Anchor{}
	for _, dir := range v.dirs {
		firsts, anchor, err := v.segmentsOf(dir)
		if err != nil {
			return err
		}
		base[dir] = anchor
		for _, first := range firsts {
			all = append(all, segmentAt{first, dir})
		}
	}
	slices.SortStableFunc(all, func(a, b segmentAt) int { return cmp.Compare(a.first, b.first) })
	all = slices.CompactFunc(all, func(a, b segmentAt) bool { return a.first == b.first }) // one that was copied and not removed yet
	v.path = v.dir                                                                         // for what is found if there is no segment at all
	if len(all) > 0 {
		v.begin(base[all[0].dir], all[0].first)
	}
	v.proofs.sort()
	if p := v.proofs.check(v.head); p != nil {
		v.report.find(&DamageError{File: filepath.Join(v.dir, anchorName), Seq: v.head.Seq, Reason: v.proofs.againstReason(p)})
	}
	for i, s := range all {
		if err := v.readSegment(s.dir, s.first, i == len(all)-1); err != nil {
			return err
		}
	}
	v.report.Segments = len(all)
	return nil
}

// begin has the chain begin behind what an anchor stands in for, unless the segments from before are there.
func (v *verifier) begin(anchor *Anchor, first uint64) {
	if anchor == nil || first <= anchor.Seq {
		return
	}
	v.head, v.report.Anchor = anchor.Head, anchor
	v.proofs.signed = anchor.Seq
}

// segmentsOf lists the segments of a directory that count, and reads the anchor that the first of them follows.
func (v *verifier) segmentsOf(dir string) (firsts []uint64, anchor *Anchor, err error) {
	if firsts, err = listSegments(v.fsys, dir); err != nil {
		return nil, nil, err
	}
	for _, name := range [...]string{anchorName, baseName} {
		a, err := readAnchorFile(v.fsys, dir, name)
		if damage := (*DamageError)(nil); errors.As(err, &damage) {
			v.report.find(damage)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if a == nil {
			continue
		}
		// Without the segments before it, who signed the anchor is all that vouches for it: an entry that names the key of its
		// time may be among them.
		if v.report.KeysTrusted && !v.trusted[a.Key] {
			v.report.Unknown = append(v.report.Unknown, a.Key)
		}
		if name == anchorName {
			firsts = slices.DeleteFunc(firsts, func(first uint64) bool { return first <= a.Seq })
			if err := v.checkState(dir, a); err != nil {
				return nil, nil, err
			}
		}
		v.proofs.add(proof{Head: a.Head, source: fromAnchor})
		return firsts, a, nil
	}
	return firsts, nil, nil
}

// checkState reports an anchor whose state is not what it names.
func (v *verifier) checkState(dir string, a *Anchor) error {
	f, err := v.fsys.Open(filepath.Join(dir, a.StateName()))
	if errors.Is(err, fs.ErrNotExist) {
		v.report.find(anchorDamage(dir, a.StateName(), errors.New("the state of the anchor is missing")))
		return nil
	}
	if err != nil {
		return err
	}
	err = a.checkState(v.ctx, f)
	if errors.Is(err, errState) {
		v.report.find(anchorDamage(dir, a.StateName(), err))
		err = nil
	}
	return errors.Join(err, f.Close())
}

// readRedactions has the entries stand in for a file that is lost: what they say is in the chain, signatures add nothing to it.
func (v *verifier) readRedactions(dir string) error {
	edited, lost, err := loadRedactions(v.fsys, dir)
	if lost != "" && (len(edited) > 0 || lost != missing) {
		v.report.Lost = append(v.report.Lost, filepath.Join(dir, redactionsName)+" "+lost)
	}
	for seq, list := range edited {
		v.edited[seq] = append(v.edited[seq], list...)
	}
	return err
}

// edit is a line that was rewritten, as the file of redactions says.
type edit struct {
	Redaction

	place *DamageError // the finding that it is unless an entry says the same
}

// edit returns the hash that a line has in the chain.
func (v *verifier) edit(h Head, number int64) Hash {
	hash, r := v.edited.chained(h.Seq, h.Hash)
	if r != nil {
		v.edits = append(v.edits, edit{*r, &DamageError{File: v.path, Line: number, Offset: v.size, Seq: h.Seq}})
	}
	return hash
}

// justEdited reports whether the line before was rewritten while it was read here: its redaction is in the file now.
func (v *verifier) justEdited(prev Hash, number int64) bool {
	again, err := readRedactions(v.fsys, v.dir)
	if err != nil {
		return false // which the file's own finding says, or its next reader
	}
	hash, r := again.chained(v.head.Seq, v.head.Hash)
	if r == nil || hash != prev {
		return false
	}
	v.edits = append(v.edits, edit{*r, &DamageError{File: v.path, Line: number, Seq: v.head.Seq}})
	return true
}

// judgeEdits accepts the rewritten lines that an entry of the chain vouches for. Where that entry is not among what was read,
// as for an archive by itself, the signature alone does.
func (v *verifier) judgeEdits() {
	for _, e := range v.edits {
		said, found := v.vouchers[e.By]
		switch {
		case found && said.Seq == e.Seq && said.Old == e.Old && said.New == e.New:
			v.report.Redacted++
			continue
		case e.By > v.head.Seq && (!v.report.KeysTrusted || v.trusted[e.Key]):
			v.report.Redacted++
			v.report.VouchedElsewhere++
			continue
		case e.By > v.head.Seq:
			e.place.Reason = fmt.Sprintf("the line was rewritten, and neither a trusted key nor an entry up to %d vouches for that", v.head.Seq)
		default:
			e.place.Reason = fmt.Sprintf("the line was rewritten, and entry %d does not vouch for that", e.By)
		}
		v.report.find(e.place)
	}
}
