package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/store"
)

// auditSearch is one Audit.Log: it reads the parts of the journal that can hold what is asked for, and keeps what is.
type auditSearch struct {
	view
	as     int64 // whom the entries are shown to
	in     *schema.AuditLogInput
	reach  func(pid int64) bool
	filter store.Filter
	limit  int
	seen       // the journal as it was when the search began
	size   int // of what was found, as JSON
	out    schema.AuditLogOutput

	intents map[uint64]schema.Value // data of the messages of intents that were passed, where requests are asked for
}

// errEnough ends a search whose page is full.
var errEnough = errors.New("page is full")

// search is what Audit.Log answers: as many entries as fit the limit and a line.
func (v view) search(ctx context.Context, as int64, in *schema.AuditLogInput, reach func(int64) bool, now seen) (*schema.AuditLogOutput, error) {
	if _, err := v.journal.Sync(); err != nil { // so that the proof of every answer that has left is found
		return nil, errNoJournal()
	}
	s := auditSearch{view: v, as: as, in: in, reach: reach, limit: 50, seen: now, out: schema.AuditLogOutput{Entries: []schema.AuditEntry{}}}
	if in.Limit != nil {
		s.limit = int(*in.Limit)
	}
	s.filter = store.Filter{PID: in.PID, SinceTime: in.SinceTime, UntilTime: in.UntilTime}
	if in.Type != nil {
		s.filter.Type = *in.Type
	}
	if in.Correlation != nil {
		s.filter.Correlation = *in.Correlation
	}
	switch err := s.run(ctx); {
	case errors.Is(err, errEnough):
		s.out.Next = s.out.Entries[len(s.out.Entries)-1].Seq
	case err != nil:
		return nil, err
	}
	return &s.out, nil
}

// run reads range after range.
func (s *auditSearch) run(ctx context.Context) error {
	from := uint64(1)
	if s.in.SinceSeq != nil {
		from = uint64(*s.in.SinceSeq) + 1
	}
	for {
		ranges, err := s.ranges(ctx, from)
		if err != nil {
			return err
		}
		for _, r := range ranges {
			if err := s.read(ctx, r); err != nil || r.Last == store.OpenEnd {
				return err
			}
			from = r.Last + 1
		}
	}
}

// ranges asks the index. What it cannot tell is read.
func (s *auditSearch) ranges(ctx context.Context, from uint64) ([]store.Range, error) {
	all := []store.Range{{First: from, Last: store.OpenEnd}}
	snapshots := s.snapshots
	if snapshots == nil || s.filter == (store.Filter{}) {
		return all, nil
	}
	ranges, err := snapshots.Store.Ranges(ctx, s.filter, from, rangesAtOnce)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && len(ranges) > 0:
		return ranges, nil
	case errors.Is(err, store.ErrDamaged):
		err = errors.Join(err, snapshots.Store.DropIndex(ctx))
	}
	s.kernel.log.Warn("index of the journal was not used: the journal is read instead", "error", err)
	return all, nil
}

// rangesAtOnce is how many parts of the journal the index is asked for at a time.
const rangesAtOnce = 64

// read keeps the entries of a range that are asked for.
func (s *auditSearch) read(ctx context.Context, r store.Range) error {
	reader := s.reader(r.First, func() uint64 { return min(r.Last, s.head, s.journal.Synced()) })
	defer reader.Close() // read only
	for {
		record, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		if !s.timely(record) {
			continue
		}
		if err := s.keep(ctx, record); err != nil {
			return err
		}
	}
}

// timely looks at what can be told without decoding the entry.
func (s *auditSearch) timely(r *journal.Record) bool {
	if s.in.SinceTime != nil && r.Time < *s.in.SinceTime || s.in.UntilTime != nil && r.Time > *s.in.UntilTime {
		return false
	}
	return s.reach(ownerOf(r))
}

// keep takes an entry into the page, if it is one that is asked for.
func (s *auditSearch) keep(ctx context.Context, record *journal.Record) error {
	entry, err := auditEntry(record, s.unended, s.as)
	if err != nil {
		return err
	}
	if s.in.Request != nil && *s.in.Request {
		if err := s.addRequest(ctx, record, entry); err != nil {
			return err
		}
	}
	if entry == nil {
		return nil
	}
	if s.in.Type != nil && entry.Type != *s.in.Type || s.in.Correlation != nil && string(entry.Correlation) != *s.in.Correlation {
		return nil
	}
	text, err := schema.Marshal(entry)
	if err != nil {
		return err
	}
	if s.size += len(text) + 1; s.size > kernel.MaxData && len(s.out.Entries) > 0 {
		return errEnough
	}
	s.out.Entries = append(s.out.Entries, *entry)
	if len(s.out.Entries) == s.limit {
		return errEnough
	}
	return nil
}

// addRequest adds the data of a call's message to its row. Of a call with an effect it stands in the intent's record, which is
// as a rule a record that this search has passed.
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
	call, err := recall(record)
	if err != nil {
		return fmt.Errorf("read entry %d: %w", record.Seq, err)
	}
	data := slices.Clone(schema.Value(call.Message.Data)) // the record is the reader's
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

// requestAt reads the data of the message of one record.
func (s *auditSearch) requestAt(ctx context.Context, seq uint64) (schema.Value, error) {
	reader := s.reader(seq, func() uint64 { return seq })
	defer reader.Close() // read only
	record, err := reader.Next(ctx)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", seq, err)
	}
	call, err := recall(record)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", seq, err)
	}
	return slices.Clone(schema.Value(call.Message.Data)), nil
}
