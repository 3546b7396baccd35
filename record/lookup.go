package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
)

// at returns the record of an entry.
func (s *showing) at(ctx context.Context, seq uint64) (*journal.Record, error) {
	var record *journal.Record
	err := s.untilNow(func(floor uint64) (err error) {
		record, err = s.within(ctx, seq, seq, func(*journal.Record) bool { return true })
		return err
	})
	if gone, archived := errors.AsType[*journal.ArchivedError](err); archived && s.missing != nil {
		err = &journal.ArchivedError{Seq: gone.Seq, Anchor: s.missing}
	}
	if s.call.PID == kernel.Operator {
		err = journal.TellOperator(err)
	}
	if err == nil && (record == nil || record.Seq != seq) {
		err = fmt.Errorf("read entry %d: it is not in the journal", seq)
	}
	return record, err
}

// lookAround finds the available archives, and returns the first entry that can be read.
func (s *showing) lookAround() (first uint64, err error) {
	anchor, err := s.anchor(1)
	if err != nil {
		return 0, err
	}
	s.parts, s.missing = journal.Parts(s.Files, anchor)
	for i := len(s.parts) - 1; i >= 0; i-- {
		if s.unreadable[s.parts[i].Dir] {
			s.parts, s.missing = s.parts[i+1:], s.parts[i].Anchor
			break
		}
	}
	if s.missing == nil {
		return 1, nil
	}
	return s.missing.Seq + 1, nil
}

// An unreadableError says that an archive cannot be read.
type unreadableError struct{ dir string }

func (e *unreadableError) Error() string { return "read archive in " + e.dir }

// untilNow calls look with the first entry that can be read. It calls it again if entries were archived meanwhile, or an
// archive was found to be unreadable.
func (s *showing) untilNow(look func(floor uint64) error) error {
	for {
		floor, err := s.lookAround()
		if err != nil {
			return err
		}
		err = look(floor)
		if away, ok := errors.AsType[*unreadableError](err); ok {
			if s.unreadable == nil {
				s.unreadable = make(map[string]bool)
			}
			s.unreadable[away.dir] = true
			continue
		}
		gone, archived := errors.AsType[*journal.ArchivedError](err)
		if !archived || gone.Seq < floor {
			return err
		}
	}
}

// latest returns the last record up to an entry for which fits is true, or nil if there is none, or none that can be read.
func (s *showing) latest(ctx context.Context, f index.Filter, upTo uint64, fits func(*journal.Record) bool) (found *journal.Record, err error) {
	err = s.untilNow(func(floor uint64) (err error) {
		found, err = s.latestFrom(ctx, f, floor, upTo, fits)
		return err
	})
	return found, err
}

// latestFrom is latest, starting at the first entry that can be read. It asks the index for one range at a time, so the
// index is read only as far back as the match, and a walk from cause to cause reads it once.
func (s *showing) latestFrom(ctx context.Context, f index.Filter, floor, upTo uint64, fits func(*journal.Record) bool) (*journal.Record, error) {
	for upTo >= floor {
		ranges := []index.Range{{First: floor, Last: upTo}}
		if s.Snapshots != nil {
			found, err := s.Snapshots.Store.Before(ctx, f, upTo, 1)
			if err == nil {
				ranges = found
			} else if err := s.unindexed(ctx, err); err != nil {
				return nil, err
			}
		}
		for _, r := range ranges {
			if r.Last < floor {
				return nil, nil
			}
			r.First = max(r.First, floor)
			var last *journal.Record
			err := s.scan(ctx, r, func(record *journal.Record) bool {
				if fits(record) {
					last = kept(record)
				}
				return false
			})
			if err != nil || last != nil {
				return last, err
			}
			upTo = r.First - 1
		}
		if len(ranges) == 0 {
			break
		}
	}
	return nil, nil
}

// earliest returns the first record from an entry on for which fits is true, or nil if there is none, or none that can be
// read. fits may see a record again if others were archived meanwhile.
func (s *showing) earliest(ctx context.Context, f index.Filter, from uint64, fits func(*journal.Record) bool) (found *journal.Record, err error) {
	err = s.untilNow(func(floor uint64) (err error) {
		found, err = s.earliestFrom(ctx, f, max(from, floor), fits)
		return err
	})
	return found, err
}

func (s *showing) earliestFrom(ctx context.Context, f index.Filter, from uint64, fits func(*journal.Record) bool) (found *journal.Record, err error) {
	for from <= s.Head {
		ranges := []index.Range{{First: from, Last: index.OpenEnd}}
		if s.Snapshots != nil {
			some, err := s.Snapshots.Store.Ranges(ctx, f, from, 1)
			if err == nil {
				ranges = some
			} else if err := s.unindexed(ctx, err); err != nil {
				return nil, err
			}
		}
		for _, r := range ranges {
			if found, err = s.within(ctx, r.First, r.Last, fits); err != nil || found != nil || r.Last == index.OpenEnd {
				return found, err
			}
			from = r.Last + 1
		}
	}
	return nil, nil
}

// unindexed logs why the index cannot be used, or returns the error if the query has ended.
func (s *showing) unindexed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, index.ErrDamaged) {
		err = errors.Join(err, s.Snapshots.Store.Drop())
	}
	s.Logger.Warn("index of the journal was not used: the journal is read instead", "error", err)
	return nil
}

// within returns the first record between two entries for which fits is true, or nil.
func (s *showing) within(ctx context.Context, first, last uint64, fits func(*journal.Record) bool) (found *journal.Record, err error) {
	err = s.scan(ctx, index.Range{First: first, Last: last}, func(r *journal.Record) bool {
		if fits(r) {
			found = kept(r)
		}
		return found != nil
	})
	return found, err
}

// kept returns a copy of a record, since the reader reuses its memory.
func kept(r *journal.Record) *journal.Record {
	c := *r
	c.Line = slices.Clone(r.Line)
	if err := journal.ParseLine(c.Line, &c); err != nil {
		panic("record: a line that was read cannot be read: " + err.Error())
	}
	return &c
}

// scan calls each with the records of a range until it returns true. It also reads archived records whose archive is available.
func (s *showing) scan(ctx context.Context, r index.Range, each func(*journal.Record) bool) error {
	for i := range s.parts {
		part := &s.parts[i]
		if r.First < part.First || r.First > part.Anchor.Seq || r.First > r.Last {
			continue
		}
		last := min(r.Last, part.Anchor.Seq)
		reached, enough, err := read(ctx, part.Reader(s.Files, r.First), last, each)
		switch {
		case enough || ctx.Err() != nil:
			return err
		case err != nil || reached < last:
			s.Logger.Warn("archive of the journal cannot be read", "directory", part.Dir, "after", reached, "error", err)
			return &unreadableError{part.Dir}
		case last == r.Last:
			return nil
		}
		r.First = last + 1
	}
	_, _, err := read(ctx, s.reader(r.First, func() uint64 { return min(r.Last, s.Head, s.Journal.Synced()) }), r.Last, each)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	return nil
}

// first returns the first record of a reader up to last, or nil, and closes the reader.
func first(ctx context.Context, reader *journal.Reader, last uint64) (found *journal.Record, err error) {
	_, _, err = read(ctx, reader, last, func(r *journal.Record) bool {
		found = kept(r)
		return true
	})
	return found, err
}

// read calls each with the records of a reader up to last, until it returns true, and closes the reader. reached is the
// last record that was read.
func read(ctx context.Context, reader *journal.Reader, last uint64, each func(*journal.Record) bool) (reached uint64, enough bool, err error) {
	defer reader.Close() // read only
	for reached < last {
		record, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return reached, false, err
		}
		if record.Seq > last {
			break
		}
		if reached = record.Seq; each(record) {
			return reached, true, nil
		}
	}
	return reached, false, nil
}
