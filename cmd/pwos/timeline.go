package main

import (
	"context"
	"errors"
	"math"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// record reads the record of one kernel page by page, and buffers one page.
type record struct {
	cli.Asked

	names     view.Names
	narrative *view.Narrative // the state of its story

	fetch func(ctx context.Context, since, limit int64) (auditPart, error) // returns the selected entries after since
	end   int64                                                            // entries from this one on are omitted: reading appended them
	since int64                                                            // the next page begins after this entry
	last  int64                                                            // the latest entry that was read
	page  []view.Entry
	begun bool
	more  bool // another page follows
}

// timeline merges the records of kernels.
type timeline struct {
	app     *app
	records []*record
	most    int64 // the most entries that remain to be read
	missing cli.Unanswered

	names func(ctx context.Context, c *client.Client) (view.Names, error)
	end   func(ctx context.Context, c *client.Client) (int64, error) // returns the number at which reading ends; nil: no end
}

// clocksDiffer is printed with the entries of several kernels.
const clocksDiffer = "calls of several kernels are in the order of their times: the clocks of different hosts differ"

func (a *app) newTimeline(list []cli.Asked, q auditQuestion) *timeline {
	t := &timeline{app: a, most: math.MaxInt64, names: allNames, end: journalEnd, missing: cli.Unanswered{Show: a.PrintUnanswered}}
	if q.Limit != nil {
		t.most = *q.Limit
	}
	told := new(view.NarratedCalls)
	for _, one := range list {
		r := &record{Asked: one, since: view.Deref(q.SinceSeq), end: math.MaxInt64, more: true}
		question := q // a copy for each kernel, since it records what the kernel refuses
		question.archived = a.sayArchived
		r.fetch = func(ctx context.Context, since, limit int64) (auditPart, error) {
			return question.page(ctx, one.Client, since, limit)
		}
		r.narrative = &view.Narrative{Kernel: one.Kernel, Calls: told}
		t.records = append(t.records, r)
	}
	if len(list) > 1 && !a.WantsJSON() {
		a.Say("%s", clocksDiffer)
	}
	return t
}

// each calls do with the selected entries of all records, ordered by time, up to the limit. It passes over kernels that do not answer.
func (t *timeline) each(ctx context.Context, do func(r *record, e *view.Entry) error) error {
	if t.most == 0 {
		return nil
	}
	records := make([]view.Record, len(t.records))
	for i, r := range t.records {
		records[i] = func() (*view.Entry, error) {
			e, err := t.next(ctx, r)
			return e, t.missing.Pass(i, r.Kernel, err)
		}
	}
	err := view.Merge(records, func(i int, e *view.Entry) error {
		if err := do(t.records[i], e); err != nil {
			return err
		}
		if t.most--; t.most == 0 {
			return cli.ErrEnough
		}
		return nil
	})
	if errors.Is(err, cli.ErrEnough) {
		return nil
	}
	return err
}

// next returns the next selected entry of a record; nil at its end.
func (t *timeline) next(ctx context.Context, r *record) (*view.Entry, error) {
	if err := t.begin(ctx, r); err != nil {
		return nil, err
	}
	for len(r.page) == 0 && r.more {
		part, err := r.read(ctx, r.since, min(cli.ListPage, t.most))
		if err != nil {
			return nil, err
		}
		r.page, r.since, r.more = part.entries, part.next, part.next != 0
	}
	if len(r.page) == 0 || r.page[0].Seq >= r.end {
		r.page, r.more = nil, false
		return nil, nil
	}
	e := &r.page[0]
	if e.Seq <= r.last {
		return nil, r.disordered(e.Seq, r.last)
	}
	r.page, r.last = r.page[1:], e.Seq
	return e, nil
}

// begin queries the names of the processes, and the end of the record, before the first page.
func (t *timeline) begin(ctx context.Context, r *record) (err error) {
	if r.begun {
		return nil
	}
	r.begun = true
	if r.names, err = t.names(ctx, r.Client); err != nil {
		return err
	}
	r.narrative.Names = r.names
	if t.end != nil {
		r.end, err = t.end(ctx, r.Client)
	}
	return err
}

// read requests a page of the selected entries after since.
func (r *record) read(ctx context.Context, since, limit int64) (auditPart, error) {
	part, err := r.fetch(ctx, since, limit)
	if err == nil && part.next != 0 && part.next <= since {
		err = r.disordered(part.next, since)
	}
	return part, err
}

// disordered returns the error for a record whose numbers do not increase: reading it might not end.
func (r *record) disordered(seq, after int64) error {
	return client.AsAnswered(fault.ClusterRequest.New("the kernel %s answers with entry %d after entry %d", r.Kernel, seq, after))
}

// last calls do with the newest selected entries of all records, limited to most, ordered by time.
func (t *timeline) last(ctx context.Context, most int64, do func(r *record, e *view.Entry) error) error {
	records := make([]view.Record, len(t.records))
	var total int64
	for i, r := range t.records {
		entries, err := t.newest(ctx, r, most)
		if err := t.missing.Pass(i, r.Kernel, err); err != nil {
			return err
		}
		total += int64(len(entries))
		records[i] = view.RecordOf(entries)
	}
	return view.Merge(records, func(i int, e *view.Entry) error {
		if total--; total >= most {
			return nil
		}
		return do(t.records[i], e)
	})
}

// newest returns the newest selected entries of one record, limited to most.
func (t *timeline) newest(ctx context.Context, r *record, most int64) ([]view.Entry, error) {
	if err := t.begin(ctx, r); err != nil {
		return nil, err
	}
	return newest(r.since, r.end-1, most, func(since, limit int64) (auditPart, error) {
		return r.read(ctx, since, limit)
	})
}

// tell calls write with each sentence of the story, in order.
func (t *timeline) tell(ctx context.Context, write func(s *view.Sentence) error) error {
	all := func(sentences []view.Sentence) error {
		for i := range sentences {
			if err := write(&sentences[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := t.each(ctx, func(r *record, e *view.Entry) error { return all(r.narrative.Add(e)) }); err != nil {
		return err
	}
	for _, r := range t.records {
		if err := all(r.narrative.End()); err != nil {
			return err
		}
	}
	return nil
}
