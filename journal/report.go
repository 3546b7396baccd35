package journal

import "fmt"

// MaxFindings is how many DamageErrors a Report holds; more are counted only.
const MaxFindings = 100

// A Report is what Verify found.
type Report struct {
	Segments int
	Entries  uint64 // lines that are entries
	Bytes    int64  // of all segments
	Head     Head   // the last entry in the chain

	Checkpoints int      // checkpoints with a good signature of an accepted key, and in agreement with the chain
	Vouched     uint64   // the last entry that such a checkpoint, or one from outside, vouches for
	Keys        []string // the keys that signed, in order of appearance
	KeysTrusted bool     // whether they were compared with keys that the caller named
	Outside     uint64   // the last entry that a checkpoint from outside was compared with

	Anchor   *Anchor  // what the first segment follows; nil if the first entry is there
	Unknown  []string // keys of anchors that are not trusted by themselves
	Redacted int      // lines that were rewritten, with somebody to vouch for that
	// VouchedElsewhere is how many of them are vouched for by an entry that was not read, and here by a signature alone.
	VouchedElsewhere int
	Lost             []string // files of redactions that are not as they were written, with what is wrong

	TornFile  string // the segment that ends in an unfinished write, empty if none does
	TornBytes int64  // how much of one; a running kernel may be in the middle of it

	Findings []*DamageError // in order of place: segments first, then checkpoints
	Omitted  int            // findings that are not in Findings
}

// OK says that nothing contradicts the record. It does not say that nothing is missing: see Limits.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

// Limits says in full sentences what this verification could not see, whatever it found.
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
