package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// VerifyOptions say what Verify may take as known.
type VerifyOptions struct {
	// Keys are the authorized-key lines that checkpoints may be signed with. Where there are none, any key will do, and
	// the Report says so.
	Keys []string

	// Names, where not nil, returns the host key that an entry names as the one of what follows, "" for an entry that names
	// none. A checkpoint signed with a key that is not in Keys is accepted where the record, vouched for by a later
	// checkpoint of one that is, names its key as the host key at its entry.
	Names func(*Record) string

	// Known are checkpoints that were kept where nobody could change them together with the journal.
	Known []Checkpoint
}

var errUntrusted = errors.New("the checkpoint is signed with a key that is not trusted")

// Verify reads a whole journal with its checkpoints, and changes nothing. It finds entries that were edited, reordered,
// removed, repeated or brought in from elsewhere, and journals that were cut below a checkpoint, cut and continued, or
// rebuilt without the key. It may run beside a kernel that writes, a nil fsys means OSFS, and it takes memory for the
// longest line and a few dozen bytes a checkpoint.
//
// The error is for what kept it from reading, ctx included; what it read and did not like is in the Report.
func Verify(ctx context.Context, fsys FS, dir string, o VerifyOptions) (*Report, error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	v := &verifier{ctx: ctx, fsys: fsys, dir: dir, trusted: map[string]bool{}, names: o.Names, others: map[uint64][]*otherCheck{}}
	v.report.KeysTrusted = len(o.Keys) > 0
	for _, line := range o.Keys {
		_, key, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("verify journal: %w", err)
		}
		v.trusted[key] = true
	}
	for _, read := range []func() error{
		func() error { return v.outside(o.Known) },
		// What vouches is read before what is vouched for: a kernel that writes meanwhile only adds to the latter.
		v.readMark, v.readCheckpoints, v.readSegments,
	} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("verify journal: %w", err)
		}
	}
	v.settle()
	return &v.report, nil
}

// A verifier goes on after a fault: it takes the line at fault for what it says, so that one change gives one finding or
// two, and the next is found as well.
type verifier struct {
	ctx     context.Context
	fsys    FS
	dir     string
	trusted map[string]bool

	proofs proofs
	names  func(*Record) string
	named  []namedKey               // in the order of the entries
	others map[uint64][]*otherCheck // checkpoints of keys that are not trusted, by their entry
	checks []*DamageError           // findings of the checkpoints file, reported after those of the segments
	signed bool                     // the checkpoints file exists
	head   Head
	report Report

	path string // of the segment being read
	size int64
}

// outside refuses a checkpoint that does not verify, rather than to report it: it was given as the truth.
func (v *verifier) outside(known []Checkpoint) error {
	for _, cp := range known {
		err := cp.Verify()
		if err == nil && v.report.KeysTrusted && !v.trusted[cp.Key] {
			err = errUntrusted
		}
		if err != nil {
			return fmt.Errorf("checkpoint of entry %d from outside: %w", cp.Seq, err)
		}
		v.proofs.add(proof{Head: cp.Head, source: fromOutside})
		v.report.Outside = max(v.report.Outside, cp.Seq)
	}
	return nil
}

func (v *verifier) readMark() error {
	f, err := v.fsys.Open(filepath.Join(v.dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// A mark that cannot be believed is none. A running kernel may be writing it just now.
	h, _, err := readMark(f)
	if h.Seq > 0 {
		v.proofs.add(proof{Head: h, source: fromMark})
	}
	return errors.Join(err, f.Close())
}

func (v *verifier) readCheckpoints() (err error) {
	r, err := openCheckpoints(v.fsys, v.dir)
	if r == nil {
		return err
	}
	v.signed = true
	defer func() { err = errors.Join(err, r.close()) }()
	seen := map[string]bool{}
	for {
		off := r.lines.off
		cp, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if damage := (*DamageError)(nil); errors.As(err, &damage) {
			v.checks = append(v.checks, damage)
			continue
		}
		if err != nil {
			return err
		}
		if !seen[cp.Key] {
			seen[cp.Key] = true
			v.report.Keys = append(v.report.Keys, cp.Key)
		}
		if err := cp.Verify(); err != nil {
			v.checks = append(v.checks, r.damage(off, cp.Seq, err.Error()))
			continue
		}
		// A good signature of somebody else proves nothing, so it takes no part in what follows. The record may yet say that
		// the key was the kernel's.
		if v.report.KeysTrusted && !v.trusted[cp.Key] {
			v.others[cp.Seq] = append(v.others[cp.Seq], &otherCheck{Checkpoint: cp, place: r.damage(off, cp.Seq, errUntrusted.Error())})
			continue
		}
		v.proofs.add(proof{Head: cp.Head, line: r.lines.line})
	}
}

// settle holds the end of the chain against what vouches for later entries.
func (v *verifier) settle() {
	v.judgeOthers()
	v.report.Head = v.head
	v.report.Checkpoints = v.proofs.checks
	v.report.Vouched = v.proofs.signed
	if p := v.proofs.beyond(v.head.Seq); p != nil {
		v.report.find(&DamageError{File: v.path, Offset: v.size, Seq: v.head.Seq + 1, Reason: missingReason(p)})
	}
	if v.report.KeysTrusted && !v.signed && v.head.Seq > 0 {
		v.report.find(&DamageError{
			File:   filepath.Join(v.dir, checkpointsName),
			Reason: "there is no file of checkpoints, but a kernel with a host key makes one before the first entry",
		})
	}
	for _, e := range v.checks {
		v.report.find(e)
	}
}
