package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
)

// VerifyOptions are what Verify may rely on.
type VerifyOptions struct {
	// Keys are the authorized-key lines whose checkpoints are accepted. If there are none, any key is accepted, and the
	// Report says so.
	Keys []string

	// Names, if not nil, returns the host key that an entry names for the entries that follow, or "". A checkpoint signed
	// with a key that is not in Keys is accepted if the journal names its key as the host key at its entry, and a later
	// checkpoint of a key in Keys covers that.
	Names func(*Record) string

	// Known are checkpoints that were kept where they could not be changed together with the journal.
	Known []Checkpoint

	// Archives are directories with archived segments of the same journal.
	Archives []string
}

var errUntrusted = errors.New("the checkpoint is signed with a key that is not trusted")

// Verify reads a whole journal with its checkpoints, and changes nothing. It finds entries that were edited, reordered,
// removed, repeated or inserted, and journals that were cut before a checkpoint, cut and continued, or rebuilt without the
// key. It may run while a kernel writes. A nil fsys means OSFS. It needs memory for the longest line and a few dozen bytes
// a checkpoint.
//
// The error says what prevented reading, including ctx; faults of the journal are in the Report.
func Verify(ctx context.Context, fsys FS, dir string, o VerifyOptions) (*Report, error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	v := &verifier{
		ctx: ctx, fsys: fsys, dir: dir, dirs: append(slices.Clone(o.Archives), dir), trusted: map[string]bool{}, names: o.Names,
		others: map[uint64][]*otherCheck{}, edited: redactions{}, vouchers: map[uint64]Redaction{},
	}
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
		// Proofs are read before the entries: a kernel that writes meanwhile only adds entries.
		v.readMark, v.eachDir(v.readCheckpoints), v.eachDir(v.readRedactions), v.readSegments,
	} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("verify journal: %w", err)
		}
	}
	v.finish()
	return &v.report, nil
}

// A verifier continues after a fault and accepts the faulty line as it is, so that one change gives one or two findings,
// and later changes are found too.
type verifier struct {
	ctx     context.Context
	fsys    FS
	dir     string
	dirs    []string // archives, then dir
	trusted map[string]bool

	edited   redactions
	edits    []edit
	vouchers map[uint64]Redaction // redactions that entries vouch for, by the entry that vouches

	proofs proofs
	names  func(*Record) string
	named  []announcedKey           // in the order of the entries
	others map[uint64][]*otherCheck // checkpoints of keys that are not in the caller's list, by their entry
	checks []*DamageError           // findings in the checkpoints file, reported after those in the segments
	signed bool                     // the checkpoints file exists
	head   Head
	report Report

	path string // of the segment being read
	size int64
}

// outside returns an error for an invalid checkpoint instead of reporting it: the caller gave it as valid.
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
	// An invalid mark is ignored. A running kernel may be writing it.
	h, _, err := decodeMark(f)
	if h.Seq > 0 {
		v.proofs.add(proof{Head: h, source: fromMark})
	}
	return errors.Join(err, f.Close())
}

// eachDir runs read for each directory.
func (v *verifier) eachDir(read func(dir string) error) func() error {
	return func() error {
		for _, dir := range v.dirs {
			if err := read(dir); err != nil {
				return err
			}
		}
		return nil
	}
}

func (v *verifier) readCheckpoints(dir string) (err error) {
	r, err := openCheckpoints(v.fsys, dir)
	if r == nil {
		return err
	}
	v.signed = true
	defer func() { err = errors.Join(err, r.close()) }()
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
		if !slices.Contains(v.report.Keys, cp.Key) {
			v.report.Keys = append(v.report.Keys, cp.Key)
		}
		if err := cp.Verify(); err != nil {
			v.checks = append(v.checks, r.damage(off, cp.Seq, err.Error()))
			continue
		}
		// A valid signature by an unknown key proves nothing by itself. The journal may still show that the key was the
		// kernel's.
		if v.report.KeysTrusted && !v.trusted[cp.Key] {
			v.others[cp.Seq] = append(v.others[cp.Seq], &otherCheck{Checkpoint: cp, place: r.damage(off, cp.Seq, errUntrusted.Error())})
			continue
		}
		v.proofs.add(proof{Head: cp.Head, line: r.lines.line})
	}
}

// finish compares the end of the chain with proofs of later entries.
func (v *verifier) finish() {
	v.judgeOthers()
	v.judgeEdits()
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

// contextEvery is how many lines are read between two checks of the context.
const contextEvery = 4096

// readSegment checks the chain through one segment, as a start does for the last one, but continues after a fault.
func (v *verifier) readSegment(dir string, first uint64, last bool) (err error) {
	v.path, v.size = segmentPath(dir, first), 0
	f, err := v.fsys.Open(v.path)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if first != v.head.Seq+1 {
		v.report.find(&DamageError{
			File: v.path, Seq: first,
			Reason: fmt.Sprintf("the segment is named after entry %d where entry %d follows", first, v.head.Seq+1),
		})
	}
	var rec Record
	for lines := newLineReader(f, 0); ; {
		if lines.line%contextEvery == 0 && v.ctx.Err() != nil {
			return v.ctx.Err()
		}
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			v.tail(lines.rest(), lines.line+1, last)
			return nil
		}
		if err == nil {
			err = ParseLine(line, &rec)
		}
		// The next start would cut the file here.
		if isFault(err) && last && tornWrite(line) {
			size, err := f.Size()
			v.tail(size-v.size, lines.line, last)
			return err
		}
		if err != nil && !isFault(err) {
			return fmt.Errorf("read segment: %w", err)
		}
		v.judge(line, lines.line, &rec, err)
		// The end of a line that is too long is unknown, so what follows cannot be separated from it.
		if errors.Is(err, errLongLine) {
			return nil
		}
		v.size = lines.off
		v.report.Bytes += int64(len(line)) + 1
	}
}

// judge adds a line to the chain, with its faults. Its hash is computed from the line as it is, and its seq is used if it
// has one, so that the next line is checked against the actual content.
func (v *verifier) judge(line []byte, number int64, rec *Record, fault error) {
	next := Head{Seq: v.head.Seq + 1, Hash: hashLine(line)}
	var reason string
	if fault != nil {
		reason = fault.Error()
	} else {
		v.report.Entries++
		next.Seq = rec.Seq
		next.Hash = v.edit(next, number)
		if reason = chainFault(v.head, rec); reason != "" && rec.Seq == v.head.Seq+1 && v.justEdited(rec.Prev, number-1) {
			reason = ""
		}
		v.note(rec, next)
	}
	// The proofs advance in any case. For a faulty line, a contradiction of a proof is not reported too.
	if p := v.proofs.check(next); p != nil && reason == "" {
		reason = v.proofs.againstReason(p)
	}
	if reason != "" {
		v.find(number, next.Seq, reason)
	}
	v.head = next
}

// tail checks the bytes after the last whole line of a segment. In the last segment they belong to an unfinished or running
// write: reported, but not a fault.
func (v *verifier) tail(torn, number int64, last bool) {
	switch {
	case torn == 0:
	case last:
		v.report.TornFile, v.report.TornBytes = v.path, torn
	default:
		v.find(number, v.head.Seq+1, unfinished)
	}
}

// find reports a fault in the line after the last one read.
func (v *verifier) find(number int64, seq uint64, reason string) {
	v.report.find(&DamageError{File: v.path, Line: number, Offset: v.size, Seq: seq, Reason: reason})
}

// announcedKey is a host key that an entry names.
type announcedKey struct {
	seq uint64
	key string // canonical
}

// otherCheck is a checkpoint by a key that is not in the caller's list.
type otherCheck struct {
	Checkpoint

	place   *DamageError // the finding to report unless it is accepted
	matches bool         // its entry has the hash that it names
}

// note records the host key that an entry names, and checks the checkpoints of the entry.
func (v *verifier) note(rec *Record, h Head) {
	for _, o := range v.others[h.Seq] {
		o.matches = o.Hash == h.Hash
	}
	if said, ok := vouched(rec); ok {
		v.vouchers[h.Seq] = said
	}
	if v.names == nil {
		return
	}
	if name := v.names(rec); name != "" {
		if _, key, err := parseKey(name); err == nil {
			v.named = append(v.named, announcedKey{h.Seq, key})
		}
	}
}

// judgeOthers accepts checkpoints whose key the journal names as the host key of that time, if a checkpoint of a key in the
// caller's list covers that entry, and reports all others.
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

// keyAt returns the host key in effect at an entry. Entries before the first that names one have that key: kernels had one
// before they named it.
func (v *verifier) keyAt(seq uint64) (announcedKey, bool) {
	i, found := slices.BinarySearchFunc(v.named, seq, func(n announcedKey, seq uint64) int { return cmp.Compare(n.seq, seq) })
	if !found {
		i = max(0, i-1)
	}
	if len(v.named) == 0 {
		return announcedKey{}, false
	}
	return v.named[i], true
}
