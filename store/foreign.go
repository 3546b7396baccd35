package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/promptware-os/pwos/journal"
)

// InJournal returns an Options.Holds that looks an entry up in the journal in dir. A nil fsys means journal.OSFS; limit is
// (*journal.Log).Synced, or nil for whatever the files hold.
func InJournal(fsys journal.FS, dir string, limit func() uint64) func(journal.Head) (bool, error) {
	return func(head journal.Head) (held bool, err error) {
		r := journal.NewReader(fsys, dir, journal.ReaderOptions{From: head.Seq, Limit: limit})
		defer func() { err = errors.Join(err, r.Close()) }()
		record, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("look up entry %d: %w", head.Seq, err)
		}
		return record.Seq == head.Seq && record.Hash == head.Hash, nil
	}
}

// dropForeign drops the snapshots and the index that are about entries that the journal does not have: those of another
// journal, or of one that lost its end.
func (s *Store) dropForeign(ctx context.Context) error {
	infos, err := s.Snapshots(ctx)
	if err != nil {
		return err
	}
	for _, info := range infos {
		held, err := s.holds(info.At)
		if err != nil {
			return err
		}
		if held {
			continue
		}
		if err := s.dropSnapshot(ctx, info.Name); err != nil {
			return err
		}
		s.opt.Trouble(fmt.Errorf("snapshot %s of entry %d dropped: %w", info.Name, info.At.Seq, ErrForeign))
	}
	mark, err := s.Watermark(ctx)
	if err != nil {
		return err
	}
	held, err := s.holds(mark)
	if err != nil || held {
		return err
	}
	if err := s.DropIndex(ctx); err != nil {
		return err
	}
	s.opt.Trouble(fmt.Errorf("index up to entry %d dropped: %w", mark.Seq, ErrForeign))
	return nil
}

// holds asks about a place in the chain; before the first entry all journals are the same.
func (s *Store) holds(head journal.Head) (bool, error) {
	if head.Seq == 0 {
		return head == journal.Head{}, nil
	}
	return s.opt.Holds(head)
}
