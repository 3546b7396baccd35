package main

import (
	"context"
	"errors"
	"slices"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// auditPart is one page of Audit.Log.
type auditPart struct {
	entries  []view.Entry
	next     int64
	archived *schema.Archived // archived entries within the requested range; nil if there are none
}

// auditPage requests one page of the log.
func auditPage(ctx context.Context, c *client.Client, in *schema.AuditLogInput) (page auditPart, err error) {
	typ := schema.AuditLog.Type
	data, err := cli.Invoke(ctx, c, typ, in)
	if err != nil {
		return page, err
	}
	members, _ := view.Members(data)
	page.next, _ = view.As[int64](members["next"])
	if raw, ok := members["archived"]; ok {
		archived, err := view.AnswerAs[schema.Archived](typ, raw)
		if err != nil {
			return page, err
		}
		page.archived = &archived
	}
	list, _ := view.Elements(members["entries"])
	for _, raw := range list {
		e, err := view.AnswerAs[schema.AuditEntry](typ, raw)
		if err != nil {
			return page, err
		}
		page.entries = append(page.entries, view.Entry{AuditEntry: e, Raw: raw})
	}
	return page, nil
}

// eachPage calls do with each page of the entries that in selects, up to in.Limit; a nil limit means all. more reports
// whether another page follows. The first error of do ends the loop; eachPage returns nil for errEnough.
func eachPage(ctx context.Context, c *client.Client, in schema.AuditLogInput, do func(entries []view.Entry, more bool) error) error {
	return cli.Pages(in.Limit, func(limit int64) (int, bool, error) {
		in.Limit = &limit
		page, err := auditPage(ctx, c, &in)
		if err != nil {
			return 0, false, err
		}
		in.SinceSeq = &page.next
		return len(page.entries), page.next != 0, do(page.entries, page.next != 0)
	})
}

// journalEnd returns the number of the journal's last entry: that of its own query.
func journalEnd(ctx context.Context, c *client.Client) (int64, error) {
	beyond, one := int64(1<<53-1), int64(1)
	answer, err := cli.Request(ctx, c, schema.Message{Type: schema.AuditLog.Type}, &schema.AuditLogInput{SinceSeq: &beyond, Limit: &one})
	end := client.SeqOf(&answer)
	if err == nil && end == 0 {
		err = errors.New("find end of journal: the kernel does not say: " + string(answer.Data))
	}
	return end, err
}

// auditQuestion selects the entries that a verb reads.
type auditQuestion struct {
	schema.AuditLogInput

	queries  bool                   // include the operator's queries
	at       cli.KernelChoice       // kernels whose record is read
	archived func(*schema.Archived) // called once if selected entries are archived; nil: not called
}

// wants reports whether to show the entry. Queries by the operator are omitted unless the flags select them.
func (q *auditQuestion) wants(e *schema.AuditEntry) bool {
	return q.queries || q.PID != nil || q.Type != nil || !view.OperatorQuery(e)
}

// page requests the selected entries after since, with the message data if the caller may read it.
func (q *auditQuestion) page(ctx context.Context, c *client.Client, since, limit int64) (auditPart, error) {
	in := q.AuditLogInput
	in.SinceSeq, in.Limit = &since, &limit
	if q.Request == nil {
		in.Request = new(true)
	}
	part, err := auditPage(ctx, c, &in)
	if q.Request == nil && errors.Is(err, fault.CapabilityOperatorOnly) {
		q.Request = new(false)
		return q.page(ctx, c, since, limit)
	}
	if part.archived != nil && q.archived != nil {
		q.archived(part.archived)
		q.archived = nil
	}
	part.entries = slices.DeleteFunc(part.entries, func(e view.Entry) bool { return !q.wants(&e.AuditEntry) })
	return part, err
}

// newest returns the last matching entries after floor and up to last, limited to most, in ascending order. Pages can be
// read only forward, so it searches parts of the journal from the end backwards, each part longer than the one before. It reads
// each entry at most once.
func newest(floor, last, most int64, page func(since, limit int64) (auditPart, error)) ([]view.Entry, error) {
	var found []view.Entry
	for span := most; last > floor && int64(len(found)) < most; span *= 8 { // span is at most 8 times the number of the last entry
		first := max(floor, last-span)
		part, err := lastOf(first, last, most-int64(len(found)), page)
		if err != nil {
			return nil, err
		}
		found = append(part, found...)
		last = first
	}
	return found, nil
}

// lastOf returns the last matching entries after first and up to last, limited to most. It buffers at most twice that number,
// plus one page.
func lastOf(first, last, most int64, page func(since, limit int64) (auditPart, error)) (found []view.Entry, err error) {
	excess := func() int { return int(max(0, int64(len(found))-most)) }
	for first < last {
		part, err := page(first, min(cli.ListPage, last-first))
		if err != nil {
			return nil, err
		}
		for _, e := range part.entries {
			if e.Seq > last {
				return slices.Delete(found, 0, excess()), nil
			}
			found = append(found, e)
		}
		if int64(excess()) > most {
			found = slices.Delete(found, 0, excess())
		}
		if part.next == 0 {
			break
		}
		first = part.next
	}
	return slices.Delete(found, 0, excess()), nil
}
