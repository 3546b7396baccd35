package journal

import "fmt"

// MaxFindings is how many DamageErrors a Report contains; further ones are only counted.
const MaxFindings = 100

// A Report is the result of Verify.
type Report struct {
	Segments int
	Entries  uint64 // lines that are entries
	Bytes    int64  // of all segments
	Head     Head   // the last entry in the chain

	Checkpoints int      // checkpoints with a valid signature of an accepted key that agree with the chain
	Vouched     uint64   // the last entry that such a checkpoint, or one from outside, covers
	Keys        []string // the keys that signed, in order of appearance
	KeysTrusted bool     // whether they were compared with keys that the caller named
	Outside     uint64   // the last entry that a checkpoint from outside was compared with

	Anchor   *Anchor  // what the first segment follows; nil if the first entry is there
	Unknown  []string // keys of anchors that are not in the caller's list
	Redacted int      // lines that were rewritten by a redaction that is vouched for
	// VouchedElsewhere counts those for which the entry that vouches was not read, but only a signature.
	VouchedElsewhere int
	Lost             []string // files of redactions that are damaged or missing, with the reason

	TornFile  string // the segment that ends in an unfinished write; empty: none
	TornBytes int64  // length of that write; a running kernel may be in the middle of it

	Findings []*DamageError // in order of place: segments first, then checkpoints
	Omitted  int            // findings that are not in Findings
}

// OK reports whether nothing contradicts the journal. It does not mean that nothing is missing: see Limits.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

// Limits returns, in full sentences, what this verification could not check, whatever it found.
func (r *Report) Limits() []string {
	var limits []string
	if n := r.Head.Seq - min(r.Vouched, r.Head.Seq); n > 0 {
		limits = append(limits, fmt.Sprintf("The last %d entries (%d to %d) follow the last checkpoint: whether entries "+
			"after %d were removed, or replaced together with all that follow them, cannot be seen.",
			n, r.Vouched+1, r.Head.Seq, r.Vouched))
	}
	if r.Vouched == 0 || r.Outside < r.Vouched {
		limits = append(limits, fmt.Sprintf("Whoever can write the files can cut the segments, the checkpoints and the head mark "+
			"back to an earlier entry together. Only a copy of a later checkpoint, kept elsewhere, shows that; "+
			"one of entry %d was compared here.", r.Outside))
	}
	if r.Anchor != nil {
		limits = append(limits, fmt.Sprintf("Entries 1 to %d are archived in %s and were not read here.", r.Anchor.Seq, r.Anchor.Archive))
	}
	if len(r.Unknown) > 0 {
		limits = append(limits, "The anchor was signed with a key that is not trusted by itself, perhaps of an epoch before: the archived "+
			"segments tell.")
	}
	if r.VouchedElsewhere > 0 {
		limits = append(limits, fmt.Sprintf("%d lines were rewritten by a redaction that a later entry vouches for, which is not here: "+
			"their signatures were checked.", r.VouchedElsewhere))
	}
	for _, lost := range r.Lost {
		limits = append(limits, "The file of redactions "+lost+": rewritten lines were compared with the entries that vouch for them; "+
			"the next start writes the file again.")
	}
	if !r.KeysTrusted && r.Checkpoints > 0 {
		limits = append(limits, "The signatures were checked with the keys that the checkpoints name themselves: "+
			"that these are the kernel's keys has to be known from elsewhere.")
	}
	return limits
}

func (r *Report) find(e *DamageError) {
	if len(r.Findings) == MaxFindings {
		r.Omitted++
		return
	}
	e.Remedy = ""
	r.Findings = append(r.Findings, e)
}
