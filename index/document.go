package index

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Document is the searchable form of a call. Its Seq is that of the row in Audit.Log. For a call with an effect that is
// the Seq of the end, or of the intent as long as there is no end.
type Document struct {
	Seq    uint64
	Intent uint64 // for an end: the Seq of its intent; else 0
	Time   int64  // Unix milliseconds
	PID    int64  // process that the call was made as
	Said   schema.Words
	Data   schema.Words
}

// Bounds of a document's words in bytes: the request's data, that and the reply's data together, and an
// error's text.
const (
	maxAsked   = 4 << 10
	maxData    = 8 << 10
	maxMessage = 1 << 10
)

// documents converts entries to documents.
type documents struct{ opt Options }

// of returns the document of an entry. ok is false for an entry that has none: a search, or an unreadable entry.
func (d *documents) of(ctx context.Context, record *journal.Record) (doc Document, ok bool, err error) {
	msg, failure := schema.Decode(record.Request, schema.OsMessage)
	if failure != nil || msg.Type == schema.EventSearch.Type {
		return doc, false, nil
	}
	outcome, failure := schema.DecodeOutcome(record.Outcome)
	if failure != nil {
		return doc, false, nil
	}
	doc = Document{Seq: record.Seq, Time: record.Time, PID: record.PID}
	called, asked := msg.Called(), msg.Data
	row, known := schema.Lookup(msg.Type)
	switch end := schema.EndOf(&msg); {
	case end != nil:
		doc.Intent, doc.PID, called = uint64(end.Intent), end.PID, end.Called()
		if asked, err = d.request(ctx, doc.Intent); err != nil {
			return doc, false, err
		}
	case known && row.Outcome != "" && outcome.Err == nil && outcome.Repeats == 0:
		outcome.Data = nil // an intent has no reply data
	}
	doc.Said = doc.Said.AppendText(called)
	if doc.PID != 0 && d.opt.Name != nil {
		doc.Said = doc.Said.AppendText(d.opt.Name(doc.PID))
	}
	doc.Said = doc.Said.AppendText(record.Origin).AppendText(msg.Meta.Correlation)
	if f := outcome.Err; f != nil {
		doc.Said = doc.Said.AppendText(verdict(f)).AppendText(string(f.ID)).AppendText(clip(shown(f), maxMessage))
	}
	doc.Data = doc.Data.AppendData(asked, maxAsked).AppendData(outcome.Data, maxData)
	return doc, true, nil
}

// verdict returns the status of a failed call, as in Audit.Log.
func verdict(f *fault.Fault) string {
	if f.Denied() {
		return schema.StatusDenied
	}
	return schema.StatusFailed
}

// shown returns an error's text without the location of a policy rule, which only the operator may see.
func shown(f *fault.Fault) string {
	text := f.Error()
	if at := f.Detail("at"); at != "" {
		text = strings.ReplaceAll(text, " ("+at+")", "")
	}
	return text
}

func clip(text string, most int) string { return text[:min(len(text), most)] }

// request returns the data of an entry's message; nil if the entry is archived and the archive is not available.
func (d *documents) request(ctx context.Context, seq uint64) ([]byte, error) {
	data, err := requestIn(ctx, journal.NewReader(d.opt.FS, d.opt.Dir, journal.ReaderOptions{From: seq, Limit: func() uint64 { return seq }}), seq)
	gone, archived := errors.AsType[*journal.ArchivedError](err)
	if !archived {
		return data, err
	}
	part := journal.PartOf(d.opt.FS, gone.Anchor, seq)
	if part == nil {
		return nil, nil
	}
	data, err = requestIn(ctx, part.Reader(d.opt.FS, seq), seq)
	if ctx.Err() != nil {
		return nil, err
	}
	return data, nil // nil if the archive is not available
}

// requestIn reads the data of an entry's message from r, and closes r.
func requestIn(ctx context.Context, r *journal.Reader, seq uint64) (data []byte, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	record, err := r.Next(ctx)
	if _, damaged := errors.AsType[*journal.DamageError](err); damaged || errors.Is(err, io.EOF) { // its reader reports that
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	msg, failure := schema.Decode(record.Request, schema.OsMessage)
	if failure != nil || record.Seq != seq {
		return nil, nil
	}
	return append([]byte(nil), msg.Data...), nil
}
