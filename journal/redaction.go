package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/schema"
)

// redactionsName is the file of the rewritten lines, signed, one a line. For each it has the hash that the line had, and so
// keeps in the chain, and the hash that it has now. An entry of the chain, Audit.Redacted, has the same, so a lost file can
// be rebuilt.
const redactionsName = "redactions"

// missing is the reason for a file of redactions that is missing although the journal is old enough to have one.
const missing = "is missing"

// A Redaction vouches for a line from which a member was removed.
type Redaction struct {
	Seq  uint64 // the entry
	By   uint64 // the entry that vouches for it in the chain
	Old  Hash   // of the line as it was appended, which the chain has
	New  Hash   // of the line as it is now
	Time int64  // Unix milliseconds
	seal
}

func (r *Redaction) text() []byte {
	return fmt.Appendf(nil, "pwos-redaction@v1\n%d\n%d\n%s\n%s\n%d\n", r.Seq, r.By, r.Old, r.New, r.Time)
}

func (r *Redaction) appendLine(dst []byte) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, r.Seq, 10)
	dst = append(dst, `,"by":`...)
	dst = strconv.AppendUint(dst, r.By, 10)
	dst = append(dst, `,"old":"`...)
	dst = appendHash(dst, &r.Old)
	dst = append(dst, `","new":"`...)
	dst = appendHash(dst, &r.New)
	dst = append(dst, `","time":`...)
	dst = strconv.AppendInt(dst, r.Time, 10)
	return appendSeal(dst, &r.seal)
}

func parseRedaction(line []byte) (Redaction, error) {
	var r Redaction
	c := cursor{b: line}
	c.word(`{"seq":`)
	r.Seq = c.uint()
	c.word(`,"by":`)
	r.By = c.uint()
	c.word(`,"old":"`)
	c.hash(&r.Old)
	c.word(`","new":"`)
	c.hash(&r.New)
	c.word(`","time":`)
	r.Time = c.int()
	c.seal(&r.seal)
	if c.bad || r.Seq == 0 || r.By <= r.Seq || string(r.appendLine(nil)) != string(line) {
		return Redaction{}, fmt.Errorf("line is not a redaction")
	}
	if err := r.verify(r.text()); err != nil {
		return Redaction{}, err
	}
	return r, nil
}

// vouched returns the redaction that an entry vouches for.
func vouched(rec *Record) (r Redaction, ok bool) {
	row := schema.AuditRedacted
	if rec.PID != 0 || !bytes.Contains(rec.Request, []byte(`"type":"`+row.Type+`"`)) {
		return r, false
	}
	msg, failure := schema.Decode(rec.Request, schema.OsMessage)
	outcome, refused := schema.DecodeOutcome(rec.Outcome)
	if failure != nil || refused != nil || msg.Type != row.Type || outcome.Err != nil {
		return r, false
	}
	decoded, err := row.Input().Decode(msg.Data)
	if err != nil {
		return r, false
	}
	in := decoded.(*schema.AuditRedactedInput)
	r = Redaction{Seq: uint64(in.Seq), By: rec.Seq, Time: rec.Time}
	return r, decodeHash(&r.Old, []byte(in.Old)) && decodeHash(&r.New, []byte(in.New))
}

// redactions are the redactions of a journal by entry, oldest first: a line may have been rewritten more than once.
type redactions map[uint64][]Redaction

// readRedactions reads the file. It is always replaced as a whole, so an invalid line means damage. It returns nil if there
// is no file.
func readRedactions(fsys FS, dir string) (redactions, error) {
	text, err := readSmall(fsys, dir, redactionsName)
	if text == nil || err != nil {
		return nil, err
	}
	rs := make(redactions)
	number, off := int64(0), int64(0)
	for line := range bytes.Lines(text) {
		number++
		r, err := parseRedaction(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return nil, &DamageError{File: filepath.Join(dir, redactionsName), Line: number, Offset: off, Reason: err.Error(), Remedy: remedyRedactions}
		}
		rs[r.Seq] = append(rs[r.Seq], r)
		off += int64(len(line))
	}
	return rs, nil
}

// loadRedactions is readRedactions, but rebuilds a lost file from the entries. lost says what is wrong with it, or "".
func loadRedactions(fsys FS, dir string) (rs redactions, lost string, err error) {
	rs, err = readRedactions(fsys, dir)
	damage, damaged := errors.AsType[*DamageError](err)
	switch {
	case damaged:
		lost = "is damaged: " + damage.Reason
	case err != nil || rs != nil:
		return rs, "", err
	default:
		lost = missing
	}
	firsts, err := listSegments(fsys, dir)
	if err != nil {
		return nil, "", err
	}
	if len(firsts) < 2 && !damaged { // it may be new: only lines of complete segments are rewritten
		return nil, "", nil
	}
	rs, err = redactionsIn(fsys, dir, firsts)
	return rs, lost, err
}

// redactionsIn collects the redactions that the entries of a directory record. It skips unreadable lines, since its callers check the
// chain.
func redactionsIn(fsys FS, dir string, firsts []uint64) (redactions, error) {
	rs := make(redactions)
	for _, first := range firsts {
		if err := rs.addFrom(fsys, segmentPath(dir, first)); err != nil {
			return nil, fmt.Errorf("look for redactions: %w", err)
		}
	}
	return rs, nil
}

func (rs redactions) addFrom(fsys FS, path string) (err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var rec Record
	named := []byte(`"` + schema.AuditRedacted.Type + `"`)
	for lines := newLineReader(f, 0); ; {
		line, err := lines.next()
		if errors.Is(err, io.EOF) || errors.Is(err, errLongLine) {
			return nil
		}
		if err != nil {
			return err
		}
		if !bytes.Contains(line, named) || ParseLine(line, &rec) != nil {
			continue
		}
		if r, ok := vouched(&rec); ok && r.Seq < r.By {
			rs[r.Seq] = append(rs[r.Seq], r)
		}
	}
}

// through drops the redactions that entries after last vouch for.
func (rs redactions) through(last uint64) {
	for seq, list := range rs {
		if list = slices.DeleteFunc(list, func(r Redaction) bool { return r.By > last }); len(list) == 0 {
			delete(rs, seq)
		} else {
			rs[seq] = list
		}
	}
}

// write replaces the file, and signs the redactions that are not signed yet.
func (rs redactions) write(fsys FS, dir string, signer Signer) error {
	var all []*Redaction
	for _, list := range rs {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	slices.SortFunc(all, func(a, b *Redaction) int { return cmp.Compare(a.By, b.By) })
	var text []byte
	for _, r := range all {
		if r.Key == "" {
			var err error
			if r.seal, err = sealed(signer, "", r.text()); err != nil {
				return fmt.Errorf("sign redaction: %w", err)
			}
		}
		text = append(r.appendLine(text), '\n')
	}
	return replace(fsys, dir, redactionsName, writeAll(text))
}

// latest returns the redaction that was made last, or nil.
func (rs redactions) latest() (last *Redaction) {
	for _, list := range rs {
		if r := &list[len(list)-1]; last == nil || r.By > last.By {
			last = r
		}
	}
	return last
}

// chained returns the hash that a line has in the chain: its own, unless it was rewritten. at is that redaction, or nil.
func (rs redactions) chained(seq uint64, hash Hash) (_ Hash, at *Redaction) {
	for i := range rs[seq] {
		if r := &rs[seq][i]; r.New == hash {
			return r.Old, r
		}
	}
	return hash, nil
}
