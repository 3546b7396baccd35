package journal

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/promptware-os/pwos/schema"
)

// redactionsName is the file of the lines that were rewritten, signed, one a line. It says of each what an entry of the
// chain, Audit.Redacted, says too: which hash the line had, and so keeps in the chain, and which it has now.
const redactionsName = "redactions"

// A Redaction vouches for a line that a member was removed from.
type Redaction struct {
	Seq  uint64 // the entry
	By   uint64 // the entry that vouches for it in the chain
	Old  Hash   // of the line as it was appended: the chain's
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

// vouched is what an entry says of a line that was rewritten.
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
	r = Redaction{Seq: uint64(in.Seq), By: rec.Seq}
	return r, decodeHash(&r.Old, []byte(in.Old)) && decodeHash(&r.New, []byte(in.New))
}

// redactions are those of a journal, by their entry, oldest first: a line may have been rewritten more than once.
type redactions map[uint64][]Redaction

// readRedactions reads the file, which is replaced as a whole: each line of it is good, or it is damaged.
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

// latest is the one that was written last, nil where there is none.
func (rs redactions) latest() (last *Redaction) {
	for _, list := range rs {
		if r := &list[len(list)-1]; last == nil || r.By > last.By {
			last = r
		}
	}
	return last
}

// chained is the hash that a line has in the chain: its own, unless it was rewritten. at is that redaction, nil where it was
// not.
func (rs redactions) chained(seq uint64, hash Hash) (_ Hash, at *Redaction) {
	for i := range rs[seq] {
		if r := &rs[seq][i]; r.New == hash {
			return r.Old, r
		}
	}
	return hash, nil
}
