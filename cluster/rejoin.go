package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// Rejoined is what Rejoin did.
type Rejoined struct {
	Aside   string // directory with the entries that the stream does not have; "": none
	First   uint64 // the first of them
	Last    uint64
	Fetched uint64 // entries that were taken from the stream
}

// Rejoin makes a journal without a writer end with the end of its stream, or later. Entries after the stream's end stay,
// and the copy sends them. If the stream has other entries in their place, Rejoin sets them aside and appends those of the
// stream. All entries from the stream must be signed with one of the keys, each in its epoch.
//
// If Rejoin is interrupted, the next attempt completes it.
func Rejoin(ctx context.Context, js jetstream.JetStream, kernel string, keys []access.PublicKey, dir string) (done Rejoined, err error) {
	stream, err := js.Stream(ctx, Stream(kernel))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return done, nil
	}
	if err != nil {
		return done, busFault("open stream", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return done, busFault("look at stream", err)
	}
	r := &rejoining{stream: stream, last: info.State.LastSeq, kernel: kernel, keys: keys, dir: dir}
	if r.local, err = endOf(dir); err != nil {
		return done, err
	}
	if err := r.findCommon(ctx); err != nil || r.next > r.last {
		return done, err
	}
	if err := r.rest(ctx, func(*journal.Record) error { return nil }, func() error { return nil }); err != nil { // checks the signatures before anything is changed
		return done, err
	}
	if r.local.Seq > r.common.Seq {
		done.First, done.Last = r.common.Seq+1, r.local.Seq
		if done.Aside, err = journal.SetAside(ctx, nil, dir, r.common); err != nil {
			return done, err
		}
	}
	done.Fetched, err = r.fetch(ctx)
	return done, err
}

// endOf returns the last entry of a journal. It recovers the journal as a start does.
func endOf(dir string) (journal.Head, error) {
	log, rec, err := journal.Open(journal.Options{Dir: dir})
	if err != nil {
		return journal.Head{}, err
	}
	return rec.Head, log.Close()
}

type rejoining struct {
	stream jetstream.Stream
	last   uint64 // the stream's last message
	kernel string
	keys   []access.PublicKey
	dir    string
	local  journal.Head // the last entry of the journal

	leader *journal.Leader // the leader at the start
	start  journal.Head    // the end of the last message that the journal has in full
	next   uint64          // the message after it
	common journal.Head    // the last entry that both have
}

// findCommon finds the last entry that the journal and the stream have in common. Each message names its last entry.
func (r *rejoining) findCommon(ctx context.Context) (failed error) {
	n := sort.Search(int(r.last), func(i int) bool {
		if failed != nil {
			return true
		}
		head, _, err := r.before(ctx, uint64(i+1))
		has := false
		if err == nil {
			has, err = r.has(ctx, head)
		}
		failed = err
		return !has
	})
	if failed != nil {
		return failed
	}
	if r.start, r.next, failed = r.before(ctx, uint64(n)); failed != nil {
		return failed
	}
	r.common = r.start
	if r.next > r.last {
		return nil
	}
	if r.leader, failed = journal.FindLeader(ctx, nil, r.dir, r.start.Seq); failed != nil {
		return fmt.Errorf("read journal: %w", failed)
	}
	more := true
	err := r.rest(ctx, func(record *journal.Record) (err error) {
		at := journal.Head{Seq: record.Seq, Hash: record.Hash}
		if more {
			if more, err = r.has(ctx, at); more {
				r.common = at
			}
		}
		return err
	}, func() error {
		if more {
			return nil
		}
		return io.EOF
	})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// before returns the last entry that the messages up to one complete, and the number of the message after the one that
// does.
func (r *rejoining) before(ctx context.Context, seq uint64) (head journal.Head, next uint64, err error) {
	for ; seq > 0; seq-- {
		m, ours, err := readMessage(ctx, r.stream, seq)
		if err != nil {
			return head, 0, busFault(fmt.Sprintf("read message %d", seq), err)
		}
		if part, of, ok := partOf(m.Header.Get(partHeader)); !ours || ok && part < of {
			continue
		}
		checkpoint, err := journal.ParseCheckpoint([]byte(m.Header.Get(checkpointHeader)))
		if err != nil {
			return head, 0, r.damaged(seq, "it has no checkpoint")
		}
		return checkpoint.Head, seq + 1, nil
	}
	return journal.Head{}, 1, nil
}

// has reports whether the journal has an entry. It assumes so for archived entries before the anchor, which cannot be
// compared.
func (r *rejoining) has(ctx context.Context, at journal.Head) (_ bool, err error) {
	if at.Seq == 0 {
		return true, nil
	}
	if at.Seq > r.local.Seq {
		return false, nil
	}
	reader := journal.NewReader(nil, r.dir, journal.ReaderOptions{From: at.Seq})
	defer func() { err = errors.Join(err, reader.Close()) }()
	record, err := reader.Next(ctx)
	if gone, ok := errors.AsType[*journal.ArchivedError](err); ok {
		return gone.Anchor.Seq > at.Seq || gone.Anchor.Head == at, nil
	}
	if err != nil {
		return false, fmt.Errorf("read journal: %w", err)
	}
	return record.Seq == at.Seq && record.Hash == at.Hash, nil
}

// rest reads and checks the stream from r.next on. It passes each entry to line, and calls group after the last entry of a
// message.
func (r *rejoining) rest(ctx context.Context, line func(*journal.Record) error, group func() error) error {
	var parts assembly
	chain, leaders := journal.Chain{Head: r.start}, newLeaders(r.keys, r.leader)
	for seq := r.next; seq <= r.last; seq++ {
		m, ours, err := readMessage(ctx, r.stream, seq)
		if err != nil {
			return busFault(fmt.Sprintf("read message %d", seq), err)
		}
		if !ours {
			continue
		}
		g, reason := parts.add(m.Header, m.Data)
		if reason != "" {
			return r.damaged(seq, reason)
		}
		if g == nil {
			continue
		}
		for text := range bytes.Lines(g.lines) {
			record, reason := chain.Add(bytes.TrimSuffix(text, []byte("\n")))
			if reason != "" {
				return r.damaged(seq, reason)
			}
			if reason := leaders.entry(record); reason != "" {
				return r.damaged(seq, reason)
			}
			if err := line(record); err != nil {
				return err
			}
		}
		if g.checkpoint.Head != chain.Head {
			return r.damaged(seq, "its checkpoint is of another entry than its last")
		}
		if reason := leaders.checkpoint(g.checkpoint); reason != "" {
			return r.damaged(seq, reason)
		}
		if err := group(); err != nil {
			return err
		}
	}
	if reason := leaders.end(chain.Head.Seq); reason != "" && leaders.trusted[leaders.signer] {
		return r.damaged(r.last, reason)
	}
	if leaders.vouched < chain.Head.Seq {
		return fault.ClusterFenced.New(
			"the stream of the kernel %s goes on with entries of another kernel, whose key is %s: this one must not lead under that name", r.kernel, leaders.signer)
	}
	return nil
}

func (r *rejoining) damaged(seq uint64, reason string) error {
	return &journal.DamageError{
		File: "stream " + Stream(r.kernel), Line: int64(seq), Seq: r.common.Seq + 1, Reason: "message of this number: " + reason,
		Remedy: quote.Command("pwos", "audit", "verify", "--kernel", r.kernel) + " says what is wrong with the stream",
	}
}

// fetch appends the entries of the stream that follow the journal's end.
func (r *rejoining) fetch(ctx context.Context) (fetched uint64, err error) {
	log, _, err := journal.Open(journal.Options{Dir: r.dir})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	err = r.rest(ctx, func(record *journal.Record) error {
		if record.Seq <= r.common.Seq {
			return nil
		}
		log.Append(&record.Entry)
		if log.Head() != (journal.Head{Seq: record.Seq, Hash: record.Hash}) {
			return r.damaged(r.next, fmt.Sprintf("entry %d is not written as this version writes it", record.Seq))
		}
		fetched++
		return nil
	}, func() error {
		if log.RotateDue() {
			if _, err := log.Rotate(); err != nil {
				return err
			}
		}
		if err := log.Flush(); err != nil {
			return err
		}
		_, err := log.Sync()
		return err
	})
	return fetched, err
}
