package actors

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
	record, err := s.within(ctx, seq, seq, func(*journal.Record) bool { return true })
	if s.call.PID == kernel.Operator {
		err = journal.TellOperator(err)
	}
	if err == nil && (record == nil || record.Seq != seq) {
		err = fmt.Errorf("read entry %d: it is not in the journal", seq)
	}
	return record, err
}

// floor is the first entry that is not archived.
func (s *showing) floor() (uint64, error) {
	anchor, err := s.anchor(1)
	if anchor == nil {
		return 1, err
	}
	return anchor.Seq + 1, err
}

// untilNow calls look with the first entry that is not archived, again where entries were archived meanwhile.
func (s *showing) untilNow(look func(floor uint64) error) error {
	for {
		floor, err := s.floor()
		if err != nil {
			return err
		}
		err = look(floor)
		gone, archived := errors.AsType[*journal.ArchivedError](err)
		if !archived || gone.Anchor.Seq < floor {
			return err
		}
	}
}

// latest returns the last record up to an entry that fits, nil if there is none, or none that is not archived.
func (s *showing) latest(ctx context.Context, f index.Filter, upTo uint64, fits func(*journal.Record) bool) (found *journal.Record, err error) {
	err = s.untilNow(func(floor uint64) (err error) {
		found, err = s.latestFrom(ctx, f, floor, upTo, fits)
		return err
	})
	return found, err
}

// latestFrom is latest, from the first entry on that is not archived. It asks for one range at a time: the index is then
// read back to what fits and no further, and a walk from cause to cause reads it once.
func (s *showing) latestFrom(ctx context.Context, f index.Filter, floor, upTo uint64, fits func(*journal.Record) bool) (*journal.Record, error) {
	for upTo >= floor {
		ranges := []index.Range{{First: floor, Last: upTo}}
		if s.snapshots != nil {
			found, err := s.snapshots.Store.Before(ctx, f, upTo, 1)
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

// earliest returns the first record from an entry on that fits, nil if there is none, or none that is not archived. fits
// may see a record again, where others were archived meanwhile.
func (s *showing) earliest(ctx context.Context, f index.Filter, from uint64, fits func(*journal.Record) bool) (found *journal.Record, err error) {
	err = s.untilNow(func(floor uint64) (err error) {
		found, err = s.earliestFrom(ctx, f, max(from, floor), fits)
		return err
	})
	return found, err
}

func (s *showing) earliestFrom(ctx context.Context, f index.Filter, from uint64, fits func(*journal.Record) bool) (found *journal.Record, err error) {
	for from <= s.head {
		ranges := []index.Range{{First: from, Last: index.OpenEnd}}
		if s.snapshots != nil {
			some, err := s.snapshots.Store.Ranges(ctx, f, from, 1)
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

// unindexed notes why the index cannot be used, and returns the error of a question that has ended.
func (s *showing) unindexed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, index.ErrDamaged) {
		err = errors.Join(err, s.snapshots.Store.Drop())
	}
	s.kernel.log.Warn("index of the journal was not used: the journal is read instead", "error", err)
	return nil
}

// within returns the first record between two entries that fits, nil if there is none.
func (s *showing) within(ctx context.Context, first, last uint64, fits func(*journal.Record) bool) (found *journal.Record, err error) {
	err = s.scan(ctx, index.Range{First: first, Last: last}, func(r *journal.Record) bool {
		if fits(r) {
			found = kept(r)
		}
		return found != nil
	})
	return found, err
}

// kept is a copy of a record, whose memory the reader uses again.
func kept(r *journal.Record) *journal.Record {
	c := *r
	c.Line = slices.Clone(r.Line)
	if err := journal.ParseLine(c.Line, &c); err != nil {
		panic("actors: a line that was read cannot be read: " + err.Error())
	}
	return &c
}

// scan calls each with the records of a range until it returns true.
func (s *showing) scan(ctx context.Context, r index.Range, each func(*journal.Record) bool) error {
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
		if each(record) {
			return nil
		}
	}
}
