package record

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Bounds of one Event.Search. For the operator, the maxRanked newest calls with the words are ranked. For an agent, calls
// are read one by one, rankedAtOnce in each of rankedRounds rounds.
const (
	maxRanked    = 1000
	rankedAtOnce = 200
	rankedRounds = 5
)

// eventSearch is one Event.Search.
type eventSearch struct {
	*View
	call    *kernel.Call
	phrases []schema.Phrase
	Extent
}

// Search implements audit.Journal. An agent's search examines the data of a call only if the gate would let the agent read
// it now, so a search cannot reveal whether a word is in other data.
func (v *View) Search(ctx context.Context, call *kernel.Call, in *schema.EventSearchInput, phrases []schema.Phrase, pids []int64) (*schema.EventSearchOutput, error) {
	now, err := v.Look(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := v.Journal.Sync(); err != nil { // so that a call that was just answered is found
		return nil, Unavailable()
	}
	s := &eventSearch{View: v, call: call, phrases: phrases, Extent: now}
	q := index.Question{Phrases: phrases, PIDs: pids, Since: in.Since, Head: now.Head, Most: maxRanked}
	var docs []index.Document
	var stats index.Corpus
	if call.PID == kernel.Operator {
		if docs, err = s.ask(ctx, q); err == nil {
			stats, err = s.corpus(ctx)
		}
	} else {
		docs, err = s.readable(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	limit := 20
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	return s.answer(ctx, index.Rank(docs, phrases, stats), limit)
}

// ask asks the index, or reads the journal if there is none.
func (s *eventSearch) ask(ctx context.Context, q index.Question) ([]index.Document, error) {
	if s.Snapshots != nil && s.Snapshots.Words != nil {
		return s.Snapshots.Words.Search(ctx, q)
	}
	return index.Scan(ctx, index.Options{FS: s.Files, Dir: s.Dir, Synced: s.Journal.Synced, Name: s.nameOf}, 1, q)
}

// nameOf returns the name of a process, or "".
func (v *View) nameOf(pid int64) string {
	if p := v.Processes.Process(pid); p != nil {
		return p.AgentID
	}
	return ""
}

// corpus counts the calls that contain each phrase, so that rare phrases weigh more.
func (s *eventSearch) corpus(ctx context.Context) (index.Corpus, error) {
	c := index.Corpus{Documents: int64(s.Head)}
	if s.Snapshots == nil || s.Snapshots.Words == nil || len(s.phrases) == 1 { // a single weight does not change the order
		return c, nil
	}
	for i := range s.phrases {
		n, err := s.Snapshots.Words.Frequency(ctx, &s.phrases[i], index.FrequentAt)
		if err != nil {
			return c, err
		}
		c.Having = append(c.Having, n)
	}
	return c, nil
}

// readable finds the matching calls whose data the agent may read.
func (s *eventSearch) readable(ctx context.Context, q index.Question) (found []index.Document, err error) {
	q.Most = rankedAtOnce
	for range rankedRounds {
		docs, err := s.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			e, err := s.read(ctx, d.Seq)
			if err != nil {
				return nil, err
			}
			if e == nil || !e.readable {
				d.Data = nil
			}
			if index.Fits(&d, s.phrases) {
				found = append(found, d)
			}
		}
		if len(docs) < q.Most || docs[len(docs)-1].Seq == 1 {
			break
		}
		q.Head = docs[len(docs)-1].Seq - 1
	}
	return found, nil
}

// answer reads the calls that were found, the best first, as many as fit a line.
func (s *eventSearch) answer(ctx context.Context, ranked []index.Ranked, limit int) (*schema.EventSearchOutput, error) {
	out := &schema.EventSearchOutput{Events: []schema.FoundEvent{}, Scores: []float64{}}
	size := 0
	for _, r := range ranked {
		if len(out.Events) == limit {
			break
		}
		e, err := s.read(ctx, r.Document.Seq)
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		if !e.readable {
			e.Data = schema.Value("null")
		}
		text, err := schema.Marshal(&e.FoundEvent)
		if err != nil {
			return nil, err
		}
		if size += len(text) + len(`,0.0000000000000000`); size > kernel.MaxData && len(out.Events) > 0 {
			break
		}
		out.Events = append(out.Events, e.FoundEvent)
		out.Scores = append(out.Scores, r.Score)
	}
	var err error
	out.Archived, err = s.Archived(s.call.PID, 1)
	return out, err
}

// foundCall is a call with what the searcher may see of it.
type foundCall struct {
	schema.FoundEvent
	readable bool // whether it may see the data
}

// read reads a call. It returns nil if there is no row with that number, such as for an intent that has ended.
func (s *eventSearch) read(ctx context.Context, seq uint64) (*foundCall, error) {
	record, err := s.recordAt(ctx, seq)
	if err != nil || record == nil {
		return nil, err
	}
	entry, err := rowIn(record, s.Unended, s.call.PID)
	if err != nil || entry == nil {
		return nil, err
	}
	e := &foundCall{FoundEvent: schema.FoundEvent{
		Type: entry.Type, Seq: entry.Seq, PID: entry.PID, Agent: s.nameOf(entry.PID), Status: entry.Status,
		Error: string(entry.Error), Code: entry.Code, ErrorID: entry.ErrorID,
		Metadata: schema.FoundMeta{ID: entry.ID, Timestamp: entry.Time, Correlation: string(entry.Correlation), Causation: string(entry.Causation), Claimed: entry.Claimed},
	}}
	if entry.Intent != 0 && entry.Intent != entry.Seq {
		if record, err = s.recordAt(ctx, uint64(entry.Intent)); err != nil {
			return nil, err
		}
	}
	e.Kind, e.Data = schema.KindCommand.String(), schema.Value("null") // of an end whose intent the journal no longer has
	if record == nil {
		return e, nil
	}
	msg, invalid := schema.Decode(record.Request, schema.OsMessage)
	if invalid != nil {
		return nil, fmt.Errorf("read entry %d: %w", record.Seq, invalid)
	}
	e.Kind, e.Data = msg.Kind.String(), msg.Data
	e.readable = s.call.PID == kernel.Operator || s.mayRead(&msg, record)
	return e, nil
}

// recordAt reads one record, from the archive if it was moved there. It returns nil if there is none with that number, or
// the archive is not available.
func (v *View) recordAt(ctx context.Context, seq uint64) (*journal.Record, error) {
	record, err := first(ctx, v.reader(seq, v.Journal.Synced), seq)
	gone, archived := errors.AsType[*journal.ArchivedError](err)
	if !archived {
		return record, err
	}
	part := journal.PartOf(v.Files, gone.Anchor, seq)
	if part == nil {
		return nil, nil
	}
	record, err = first(ctx, part.Reader(v.Files, seq), seq)
	if err != nil && ctx.Err() == nil {
		v.Logger.Warn("archive of the journal cannot be read", "entry", seq, "error", err)
		return nil, nil
	}
	return record, err
}

// mayRead reports whether the gate would let the searcher read the data of a call. For a command on the memory, it must be
// able to get the key now; for a call of its own, to make that now. It may not read what its descendants sent to others.
func (s *eventSearch) mayRead(msg *schema.Message, record *journal.Record) bool {
	if record.Origin != s.call.Origin {
		return false
	}
	if key := schema.MemoryKeyOf(msg); key != "" {
		return s.wouldAllow(schema.MemoryGet.Row(), &schema.MemoryGetInput{Key: key}, msg)
	}
	if record.PID != s.call.PID {
		return false
	}
	row, ok := schema.Lookup(msg.Type)
	if !ok {
		return false
	}
	in, err := row.Input().Decode(msg.Data)
	return err == nil && s.wouldAllow(row, in, msg)
}

// wouldAllow asks the stages of the gate that decide what an agent may do. They change nothing.
func (s *eventSearch) wouldAllow(row *schema.Syscall, in any, msg *schema.Message) bool {
	about := kernel.NewCall(kernel.Request{
		Caller: s.call.Caller, Probe: &kernel.Probe{}, Syscall: row, Input: in,
		Message: schema.Message{Kind: row.Kind, Type: row.Type, Data: slices.Clone(msg.Data), Meta: s.call.Message.Meta},
	}, s.call.Moment)
	about.PID, about.Origin, about.Token = s.call.PID, s.call.Origin, s.call.Token
	for _, stage := range []kernel.Stage{s.Gate.Token, s.Gate.Policy} {
		if stage != nil && !stage(&about).Allows() {
			return false
		}
	}
	return about.Inquiry == nil
}
