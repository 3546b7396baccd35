package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"github.com/promptware-os/pwos/schema"
)

// Leader is what an entry says about the leader of the entries that follow it: a kernel's start, or another host that takes
// over.
type Leader struct {
	Seq         uint64
	Instance    string // "" if a host takes over: the instance stays the same
	Epoch       int64
	HostKey     string // line of authorized_keys
	TakesOver   bool
	Acknowledge string // quorum, or "": as of the start
}

// LeaderOf returns what an entry says about the leader, or nil if it says nothing.
func LeaderOf(rec *Record) *Leader {
	if rec.PID != 0 || !bytes.Contains(rec.Request, []byte(`"type":"Kernel.`)) {
		return nil
	}
	msg, failure := schema.Decode(rec.Request, schema.OsMessage)
	outcome, refused := schema.DecodeOutcome(rec.Outcome)
	if failure != nil || refused != nil || outcome.Err != nil {
		return nil
	}
	switch msg.Type {
	case schema.KernelBooted.Type:
		if in, failed := schema.KernelBooted.Input().Decode(msg.Data); failed == nil {
			b := in.(*schema.BootedInput)
			return &Leader{Seq: rec.Seq, Instance: b.Instance, Epoch: b.Epoch, HostKey: b.HostKey, Acknowledge: b.Acknowledge}
		}
	case schema.KernelTakeOver.Type:
		if in, failed := schema.KernelTakeOver.Input().Decode(msg.Data); failed == nil {
			t := in.(*schema.TakeOverInput)
			return &Leader{Seq: rec.Seq, Epoch: t.Epoch, HostKey: t.HostKey, TakesOver: true}
		}
	}
	return nil
}

// NamedHostKey returns the host key that an entry names for the entries that follow, or "".
func NamedHostKey(rec *Record) string {
	if l := LeaderOf(rec); l != nil {
		return l.HostKey
	}
	return ""
}

// FindLeader returns the leader that the last such entry up to until names, or nil if all of them are archived. It reads
// the segments backwards, since each start of a kernel is such an entry.
func FindLeader(ctx context.Context, fsys FS, dir string, until uint64) (*Leader, error) {
	if fsys == nil {
		fsys = OSFS{}
	}
	firsts, err := listSegments(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, first := range slices.Backward(firsts) {
		if first > until {
			continue
		}
		found, err := leaderIn(ctx, fsys, dir, first, until)
		if _, archived := errors.AsType[*ArchivedError](err); archived {
			return nil, nil
		}
		if err != nil || found != nil {
			return found, err
		}
		until = first - 1
	}
	return nil, nil
}

// leaderIn is FindLeader for the entries first to until.
func leaderIn(ctx context.Context, fsys FS, dir string, first, until uint64) (found *Leader, err error) {
	r := NewReader(fsys, dir, ReaderOptions{From: first, Limit: func() uint64 { return until }})
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		rec, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if l := LeaderOf(rec); l != nil {
			found = l
		}
	}
}
