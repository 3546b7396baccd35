package main

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/view"
)

// printReport prints the result of verifying the journal in dir.
func (a *app) printReport(dir string, archives []string, r *journal.Report) error {
	if a.WantsJSON() {
		return a.PrintLine(reportObject(dir, archives, r))
	}
	if fresh(r) {
		return a.PrintText(fmt.Sprintf("nothing contradicts the record: %d entries, the last one's hash is %s; %s",
			r.Entries, r.Head.Hash, noCheckpoint))
	}
	result := a.Style(view.Good, "nothing contradicts the record")
	if !r.OK() {
		result = a.Style(view.Bad, fmt.Sprintf("damaged at %d places", len(r.Findings)+r.Omitted))
	}
	t := new(view.Table)
	t.Row("journal", view.Escaped(dir))
	for _, archive := range archives {
		t.Row("and", view.Escaped(archive))
	}
	t.Row("result", result)
	t.Row("entries", fmt.Sprintf("%d, in %d segments, %d bytes", r.Entries, r.Segments, r.Bytes))
	t.Row("head", fmt.Sprintf("entry %d, %s", r.Head.Seq, r.Head.Hash))
	if r.Anchor != nil {
		t.Row("archived", fmt.Sprintf("entries 1 to %d, not read here: they are in %s", r.Anchor.Seq, view.Escaped(r.Anchor.Archive)))
	}
	t.Row("checkpoints", fmt.Sprintf("%d good, the last vouches for entry %d", r.Checkpoints, r.Vouched))
	for _, key := range r.Keys {
		t.Row("signed by", view.Escaped(key))
	}
	if r.Redacted > 0 {
		t.Row("redacted", fmt.Sprintf("%d entries, as later entries vouch for", r.Redacted))
	}
	if r.TornBytes > 0 {
		t.Row("unfinished", fmt.Sprintf("%d bytes at the end of %s: a kernel may be writing them, or was killed", r.TornBytes, view.Escaped(r.TornFile)))
	}
	if err := a.PrintTable(t); err != nil || r.OK() {
		return err
	}
	t = new(view.Table)
	t.Header("file", "line", "byte", "entry", "what is wrong")
	for _, f := range r.Findings {
		t.Row(view.Escaped(filepath.Base(f.File)), orDash(f.Line), strconv.FormatInt(f.Offset, 10), orDash(int64(f.Seq)), view.Escaped(f.Reason))
	}
	if err := a.PrintText(""); err != nil {
		return err
	}
	return a.PrintTable(t)
}

// noCheckpoint is the limit of a verification without any checkpoint.
const noCheckpoint = "no checkpoint covers the entries yet, so a cut at the end cannot be detected"

// fresh reports whether a journal is intact and has no checkpoint yet.
func fresh(r *journal.Report) bool {
	return r.OK() && r.Anchor == nil && r.Segments == 1 && r.Checkpoints == 0 && r.Outside == 0 && r.TornBytes == 0
}

// orDash formats a number; 0 means unknown and is printed as "-".
func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func reportObject(dir string, archives []string, r *journal.Report) []byte {
	findings := []byte{'['}
	for i, f := range r.Findings {
		if i > 0 {
			findings = append(findings, ',')
		}
		findings = append(findings, view.Object(nil).
			Text("file", f.File).
			Integer("line", f.Line).
			Integer("offset", f.Offset).
			Integer("seq", int64(f.Seq)).
			Text("reason", f.Reason).Close()...)
	}
	o := view.Object(nil).
		Boolean("ok", r.OK()).
		Text("dir", dir).
		Integer("entries", int64(r.Entries)).
		Integer("segments", int64(r.Segments)).
		Integer("bytes", r.Bytes).
		Raw("head", view.Object(nil).Integer("seq", int64(r.Head.Seq)).Text("hash", r.Head.Hash.String()).Close()).
		Integer("checkpoints", int64(r.Checkpoints)).
		Integer("vouched", int64(r.Vouched)).
		Integer("outside", int64(r.Outside)).
		Boolean("keys_trusted", r.KeysTrusted)
	if r.Redacted > 0 {
		o = o.Integer("redacted", int64(r.Redacted))
	}
	if len(archives) > 0 {
		o = o.Raw("archives", view.Texts(archives))
	}
	if r.Anchor != nil {
		o = o.Raw("archived", view.Object(nil).Integer("first", 1).Integer("last", int64(r.Anchor.Seq)).Text("directory", r.Anchor.Archive).Close())
	}
	if r.TornBytes > 0 {
		o = o.Raw("unfinished", view.Object(nil).Text("file", r.TornFile).Integer("bytes", r.TornBytes).Close())
	}
	return o.Raw("findings", append(findings, ']')).Integer("omitted", int64(r.Omitted)).Close()
}
