package main

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/promptware-os/pwos/journal"
)

// printReport writes what the verification of the journal in dir has found.
func (a *app) printReport(dir string, r *journal.Report) error {
	if a.wantsJSON() {
		return a.printLine(reportObject(dir, r))
	}
	if fresh(r) {
		return a.printText(fmt.Sprintf("nothing contradicts the record: %d entries, the last one's hash is %s; %s",
			r.Entries, r.Head.Hash, noCheckpoint))
	}
	result := a.style(good, "nothing contradicts the record")
	if !r.OK() {
		result = a.style(bad, fmt.Sprintf("damaged at %d places", len(r.Findings)+r.Omitted))
	}
	t := new(table)
	t.row("journal", escaped(dir))
	t.row("result", result)
	t.row("entries", fmt.Sprintf("%d, in %d segments, %d bytes", r.Entries, r.Segments, r.Bytes))
	t.row("head", fmt.Sprintf("entry %d, %s", r.Head.Seq, r.Head.Hash))
	t.row("checkpoints", fmt.Sprintf("%d good, the last vouches for entry %d", r.Checkpoints, r.Vouched))
	for _, key := range r.Keys {
		t.row("signed by", escaped(key))
	}
	if r.TornBytes > 0 {
		t.row("unfinished", fmt.Sprintf("%d bytes at the end of %s: a kernel may be writing them, or was killed", r.TornBytes, escaped(r.TornFile)))
	}
	if err := a.printTable(t); err != nil || r.OK() {
		return err
	}
	t = new(table)
	t.header("file", "line", "byte", "entry", "what is wrong")
	for _, f := range r.Findings {
		t.row(escaped(filepath.Base(f.File)), orDash(f.Line), strconv.FormatInt(f.Offset, 10), orDash(int64(f.Seq)), escaped(f.Reason))
	}
	if err := a.printText(""); err != nil {
		return err
	}
	return a.printTable(t)
}

// noCheckpoint is what cannot be seen of a fresh journal.
const noCheckpoint = "no checkpoint vouches for the entries yet, so whether the last entries were cut off cannot be seen"

// fresh reports whether a journal is whole and too young to have a checkpoint: there is little to say about it.
func fresh(r *journal.Report) bool {
	return r.OK() && r.Segments == 1 && r.Checkpoints == 0 && r.Outside == 0 && r.TornBytes == 0
}

// orDash is a number of which 0 says that it is not known.
func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func reportObject(dir string, r *journal.Report) []byte {
	findings := []byte{'['}
	for i, f := range r.Findings {
		if i > 0 {
			findings = append(findings, ',')
		}
		findings = append(findings, object(nil).
			text("file", f.File).
			integer("line", f.Line).
			integer("offset", f.Offset).
			integer("seq", int64(f.Seq)).
			text("reason", f.Reason).close()...)
	}
	o := object(nil).
		boolean("ok", r.OK()).
		text("dir", dir).
		integer("entries", int64(r.Entries)).
		integer("segments", int64(r.Segments)).
		integer("bytes", r.Bytes).
		raw("head", object(nil).integer("seq", int64(r.Head.Seq)).text("hash", r.Head.Hash.String()).close()).
		integer("checkpoints", int64(r.Checkpoints)).
		integer("vouched", int64(r.Vouched)).
		integer("outside", int64(r.Outside)).
		boolean("keys_trusted", r.KeysTrusted)
	if r.TornBytes > 0 {
		o = o.raw("unfinished", object(nil).text("file", r.TornFile).integer("bytes", r.TornBytes).close())
	}
	return o.raw("findings", append(findings, ']')).integer("omitted", int64(r.Omitted)).close()
}
