package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// View answers questions about the journal of a running kernel, and implements the part of audit.Journal that only reads it.
// It is safe for concurrent use.
type View struct {
	Files     journal.FS
	Dir       string // of the journal
	Journal   *journal.Log
	Snapshots *Snapshots // with the index; nil: none
	Processes kernel.Processes
	Gate      *kernel.Gate // its stages Token and Policy say which data an agent may read
	Logger    *slog.Logger
	// Look returns the extent of the journal when everything that was appended before is written.
	Look func(context.Context) (Extent, error)
}

// Extent is the last entry, and the intents up to it that have not ended, with their status.
type Extent struct {
	Head    uint64
	Unended map[uint64]string
}

// Unavailable returns the error of a call that the journal cannot record.
func Unavailable() *fault.Fault {
	return fault.JournalUnavailable.New("the journal cannot be written: nothing was done; try again once its disk has room")
}

// Log implements audit.Journal.
func (v *View) Log(ctx context.Context, call *kernel.Call, in *schema.AuditLogInput, reach func(int64) bool) (*schema.AuditLogOutput, error) {
	now, err := v.Look(ctx)
	if err != nil {
		return nil, err
	}
	return v.page(ctx, call, in, reach, now)
}

// Verify implements audit.Journal.
func (v *View) Verify(ctx context.Context, call *kernel.Call) (*schema.AuditVerifyOutput, error) {
	if _, err := v.Look(ctx); err != nil { // so that everything appended is verified
		return nil, err
	}
	report, err := journal.Verify(ctx, v.Files, v.Dir, journal.VerifyOptions{})
	if err != nil {
		return nil, fmt.Errorf("verify journal: %w", err)
	}
	out := &schema.AuditVerifyOutput{OK: report.OK(), Entries: int64(report.Entries), Head: report.Head.Hash.String()}
	if !report.OK() {
		out.Broken = report.Findings[0].Error()
	}
	out.Archived = archivedBy(report.Anchor, call.PID)
	return out, nil
}

// Archived implements audit.Journal.
func (v *View) Archived(reader int64, from uint64) (*schema.Archived, error) {
	anchor, err := v.anchor(from)
	return archivedBy(anchor, reader), err
}

// anchor returns the anchor of the archived entries, or nil if none of them is at or after from.
func (v *View) anchor(from uint64) (*journal.Anchor, error) {
	anchor, err := journal.ReadAnchor(v.Files, v.Dir)
	if err != nil {
		return nil, fmt.Errorf("read anchor of the journal: %w", err)
	}
	if anchor != nil && anchor.Seq < from {
		anchor = nil
	}
	return anchor, nil
}

// archivedBy describes what an anchor replaces. Only the operator sees where the archive is.
func archivedBy(anchor *journal.Anchor, reader int64) *schema.Archived {
	if anchor == nil {
		return nil
	}
	a := &schema.Archived{First: 1, Last: int64(anchor.Seq)}
	if reader == kernel.Operator {
		a.Directory = anchor.Archive
	}
	return a
}

// Bounds of one Since: the memory that a subscriber that does not read may occupy, and how much is read without a result.
const (
	maxRows     = 64
	maxRowBytes = 64 << 10
	maxScanned  = 4096
)

// Since implements audit.Journal. The row of a call with an effect is that of its end.
func (v *View) Since(ctx context.Context, as, from int64, requests bool, reach func(int64) bool, wanted func(string) bool) (rows []schema.AuditEntry, next int64, err error) {
	if _, err := v.Journal.Sync(); err != nil { // otherwise the entries of queries would wait until a command causes a sync
		return nil, from, Unavailable()
	}
	reader := v.reader(uint64(from), v.Journal.Synced)
	defer reader.Close() // read only
	size := 0
	for next = from; len(rows) < maxRows && size < maxRowBytes && next-from < maxScanned; {
		record, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if gone, archived := errors.AsType[*journal.ArchivedError](err); archived && int64(gone.Anchor.Seq) >= next {
			next = int64(gone.Anchor.Seq) + 1 // the numbers of the rows show that some are missing
			break
		}
		if err != nil {
			return nil, from, fmt.Errorf("read journal: %w", err)
		}
		next = int64(record.Seq) + 1
		if !reach(ownerOf(record)) {
			continue
		}
		row, err := rowIn(record, nil, as)
		if err != nil {
			return nil, from, err
		}
		if row != nil && wanted(row.Type) {
			if requests {
				if row.Request, err = v.requestOf(ctx, record, row); err != nil {
					return nil, from, err
				}
			}
			rows = append(rows, *row)
			size += len(record.Request) + len(record.Outcome)
		}
	}
	return rows, next, nil
}

// reader returns a reader of the journal from an entry on, up to limit.
func (v *View) reader(from uint64, limit func() uint64) *journal.Reader {
	return journal.NewReader(v.Files, v.Dir, journal.ReaderOptions{From: from, Limit: limit})
}

// auditSearch reads the parts of the journal that may have matching entries, and passes those on.
type auditSearch struct {
	*View
	as     int64 // the PID that sees the entries
	in     *schema.AuditLogInput
	reach  func(pid int64) bool
	filter index.Filter
	Extent // the journal when the search began
	found  func(*schema.AuditEntry) error
	next   uint64 // the entry after the last one that was read

	intents map[uint64]schema.Value // data of the messages of intents that were read, if requests are wanted
}

// errEnough ends a search that has found enough.
var errEnough = errors.New("enough was found")

// Each implements audit.Journal.
func (v *View) Each(ctx context.Context, call *kernel.Call, in *schema.AuditLogInput, reach func(int64) bool, do func(*schema.AuditEntry) bool) error {
	now, err := v.Look(ctx)
	if err != nil {
		return err
	}
	err = v.eachMatch(ctx, call, in, reach, now, func(e *schema.AuditEntry) error {
		if !do(e) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// page answers an Audit.Log: as many entries as fit the limit and a line.
func (v *View) page(ctx context.Context, call *kernel.Call, in *schema.AuditLogInput, reach func(int64) bool, now Extent) (*schema.AuditLogOutput, error) {
	out := &schema.AuditLogOutput{Entries: []schema.AuditEntry{}}
	limit, size := 50, 0
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	err := v.eachMatch(ctx, call, in, reach, now, func(entry *schema.AuditEntry) error {
		text, err := schema.Marshal(entry)
		if err != nil {
			return err
		}
		if size += len(text) + 1; size > kernel.MaxData && len(out.Entries) > 0 {
			return errEnough
		}
		out.Entries = append(out.Entries, *entry)
		if len(out.Entries) == limit {
			return errEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		out.Next = out.Entries[len(out.Entries)-1].Seq
	case err != nil:
		return nil, err
	}
	if out.Archived, err = v.Archived(call.PID, firstOf(in)); err != nil {
		return nil, err
	}
	return out, nil
}

// eachMatch calls found with each matching entry, in their order, until it returns an error.
func (v *View) eachMatch(ctx context.Context, call *kernel.Call, in *schema.AuditLogInput, reach func(int64) bool, now Extent, found func(*schema.AuditEntry) error) error {
	if _, err := v.Journal.Sync(); err != nil { // so that the proof of every released answer is found
		return Unavailable()
	}
	s := auditSearch{View: v, as: call.PID, in: in, reach: reach, filter: filterOf(in, call.Origin), Extent: now, found: found}
	return s.run(ctx)
}

// filterOf returns what the index can filter of an Audit.Log.
func filterOf(in *schema.AuditLogInput, origin string) index.Filter {
	text := func(member *string) string {
		if member == nil {
			return ""
		}
		return *member
	}
	f := index.Filter{
		PID: in.PID, SinceTime: in.SinceTime, UntilTime: in.UntilTime, Denied: in.Denied != nil && *in.Denied,
		Type: text(in.Type), Correlation: text(in.Correlation), ID: text(in.ID), CausedBy: text(in.CausedBy),
	}
	if in.Key != nil {
		f.Key, f.Origin = strings.TrimPrefix(*in.Key, "/"), origin
	}
	return f
}

// run reads range after range, starting after the archived entries.
func (s *auditSearch) run(ctx context.Context) error {
	for from := firstOf(s.in); ; {
		anchor, err := s.anchor(from)
		if err != nil {
			return err
		}
		if anchor != nil {
			from = anchor.Seq + 1
		}
		err = s.from(ctx, from)
		gone, archived := errors.AsType[*journal.ArchivedError](err)
		from = max(from, s.next)
		if !archived || gone.Anchor.Seq < from {
			return err
		} // otherwise entries were archived meanwhile
	}
}

// firstOf returns the first entry that an Audit.Log asks for.
func firstOf(in *schema.AuditLogInput) uint64 {
	if in.SinceSeq == nil {
		return 1
	}
	return uint64(*in.SinceSeq) + 1
}

// from reads the ranges from an entry on.
func (s *auditSearch) from(ctx context.Context, from uint64) error {
	for {
		ranges, err := s.ranges(ctx, from)
		if err != nil {
			return err
		}
		for _, r := range ranges {
			if err := s.read(ctx, r); err != nil || r.Last == index.OpenEnd {
				return err
			}
			from = r.Last + 1
		}
	}
}

// ranges asks the index. What the index does not cover is one more range.
func (s *auditSearch) ranges(ctx context.Context, from uint64) ([]index.Range, error) {
	all := []index.Range{{First: from, Last: index.OpenEnd}}
	snapshots := s.Snapshots
	if snapshots == nil || s.filter == (index.Filter{}) {
		return all, nil
	}
	ranges, err := snapshots.Store.Ranges(ctx, s.filter, from, rangesAtOnce)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && len(ranges) > 0:
		return ranges, nil
	case errors.Is(err, index.ErrDamaged):
		err = errors.Join(err, snapshots.Store.Drop())
	}
	s.Logger.Warn("index of the journal was not used: the journal is read instead", "error", err)
	return all, nil
}

// rangesAtOnce is how many ranges the index returns at a time.
const rangesAtOnce = 64

// read collects the matching entries of a range.
func (s *auditSearch) read(ctx context.Context, r index.Range) error {
	reader := s.reader(r.First, func() uint64 { return min(r.Last, s.Head, s.Journal.Synced()) })
	defer reader.Close() // read only
	for {
		record, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		s.next = record.Seq + 1
		if !s.likely(record) {
			continue
		}
		if err := s.keep(ctx, record); err != nil {
			return err
		}
	}
}

// likely checks what can be checked without decoding the entry.
func (s *auditSearch) likely(r *journal.Record) bool {
	f := &s.filter
	if f.SinceTime != nil && r.Time < *f.SinceTime || f.UntilTime != nil && r.Time > *f.UntilTime {
		return false
	}
	if f.Denied && bytes.HasPrefix(r.Outcome, []byte(`{"kind":"reply"`)) {
		return false
	}
	if bytes.IndexByte(r.Request, '\\') < 0 { // no text has an escape
		for _, text := range [...]string{f.ID, f.CausedBy, f.Correlation, f.Key} {
			if !bytes.Contains(r.Request, []byte(text)) {
				return false
			}
		}
	}
	return s.reach(ownerOf(r))
}

// fits checks the rest.
func (s *auditSearch) fits(r *journal.Record, e *schema.AuditEntry) bool {
	f := &s.filter
	return (f.Type == "" || e.Type == f.Type) && (f.ID == "" || e.ID == f.ID) &&
		(f.Correlation == "" || string(e.Correlation) == f.Correlation) &&
		(f.CausedBy == "" || string(e.Causation) == f.CausedBy) &&
		(!f.Denied || e.Status == schema.StatusDenied) &&
		(f.Key == "" || r.Origin == f.Origin && keyOf(r) == f.Key)
}

// keep passes an entry on if it matches.
func (s *auditSearch) keep(ctx context.Context, record *journal.Record) error {
	entry, err := rowIn(record, s.Unended, s.as)
	if err != nil {
		return err
	}
	if entry != nil && !s.fits(record, entry) {
		delete(s.intents, uint64(entry.Intent))
		return nil
	}
	if s.in.Request != nil && *s.in.Request {
		if err := s.addRequest(ctx, record, entry); err != nil {
			return err
		}
	}
	if entry == nil {
		return nil
	}
	return s.found(entry)
}

// addRequest adds the data of a call's message to its row. For a call with an effect, the intent's record has it, which the
// search has usually read before.
func (s *auditSearch) addRequest(ctx context.Context, record *journal.Record, entry *schema.AuditEntry) error {
	if entry != nil && entry.Intent != 0 && uint64(entry.Intent) != record.Seq {
		intent := uint64(entry.Intent)
		data, passed := s.intents[intent]
		if !passed {
			var err error
			if data, err = s.requestAt(ctx, intent); err != nil {
				return err
			}
		}
		delete(s.intents, intent)
		entry.Request = data
		return nil
	}
	call, err := callOf(record)
	if err != nil {
		return fmt.Errorf("read entry %d: %w", record.Seq, err)
	}
	data := slices.Clone(schema.Value(call.Message.Data)) // the record's memory is reused by the reader
	if entry != nil {
		entry.Request = data
		return nil
	}
	if s.intents == nil {
		s.intents = make(map[uint64]schema.Value)
	}
	s.intents[record.Seq] = data
	return nil
}

// requestOf returns the data of the message of a row's call; for a call with an effect, that of the intent.
func (v *View) requestOf(ctx context.Context, record *journal.Record, row *schema.AuditEntry) (schema.Value, error) {
	if row.Intent != 0 && uint64(row.Intent) != record.Seq {
		return v.requestAt(ctx, uint64(row.Intent))
	}
	call, err := callOf(record)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", record.Seq, err)
	}
	return slices.Clone(schema.Value(call.Message.Data)), nil // the record's memory is reused by the reader
}

// requestAt returns the data of the message of one record; nil if that is archived and not available.
func (v *View) requestAt(ctx context.Context, seq uint64) (schema.Value, error) {
	record, err := v.recordAt(ctx, seq)
	if err != nil || record == nil {
		return nil, err
	}
	call, err := callOf(record)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", seq, err)
	}
	return slices.Clone(schema.Value(call.Message.Data)), nil
}
