package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// journalEnd is the number of the journal's last entry, which is that of the question itself; mark is its correlation. The
// number stands in the metadata of any journaled answer, which a stream shows in full. It leaves c at its end.
func journalEnd(ctx context.Context, c *client.Client, mark string) (int64, error) {
	const question = `{"since_seq":9007199254740991,"limit":1}`
	m := schema.Message{
		Kind: schema.KindQuery, Type: "Audit.Log", Data: []byte(question),
		Meta: schema.Metadata{Present: true, ID: mark, Timestamp: time.Now().UnixMilli(), Correlation: mark},
	}
	var out bytes.Buffer
	if _, err := c.Stream(ctx, bytes.NewReader(schema.AppendMessage(nil, &m)), &out); err != nil {
		return 0, err
	}
	answer, _ := objectOf(bytes.TrimSpace(out.Bytes()))
	metadata, _ := objectOf(answer["metadata"])
	proof, _ := objectOf(metadata["kernel"])
	seq, ok := valueOf[int64](proof["seq"])
	if !ok {
		return 0, errors.New("find end of journal: the kernel does not say: " + strings.TrimSpace(out.String()))
	}
	return seq, nil
}

// auditLast prints the newest entries that in asks for, at most so many, of the journal as it was before the first question
// about it: what the search adds is not what just happened.
func (a *app) auditLast(ctx context.Context, in schema.AuditLogInput, most int64) error {
	var end int64
	err := a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) (err error) {
		end, err = journalEnd(ctx, c, "audit-log-"+schema.NewStamper().NewID())
		return err
	})
	if err != nil {
		return err
	}
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		entries, err := newest(value(in.SinceSeq), end-1, most, func(since, limit int64) (auditPart, error) {
			in.SinceSeq, in.Limit = &since, &limit
			return auditPage(ctx, c, schema.Metadata{}, &in)
		})
		if err != nil {
			return err
		}
		out := newAuditFeed(a)
		for _, e := range entries {
			if err := out.entry(&e); err != nil {
				return err
			}
		}
		return nil
	})
}

// newest returns the last entries, at most so many, of those after floor up to last that page answers with, oldest first.
// Pages go forward only, so it asks for ever longer parts of the journal, back from the end: all of it is asked about once at
// most, and what lies behind what is found not at all.
func newest(floor, last, most int64, page func(since, limit int64) (auditPart, error)) ([]auditEntry, error) {
	var found []auditEntry
	for span := most; last > floor && int64(len(found)) < most; span *= 8 { // no more than 8 times a number of an entry
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

// lastOf returns the last entries of those after first up to last, at most so many, and holds no more than twice as many.
func lastOf(first, last, most int64, page func(since, limit int64) (auditPart, error)) (found []auditEntry, err error) {
	excess := func() int { return int(max(0, int64(len(found))-most)) }
	for first < last {
		part, err := page(first, min(listPage, last-first))
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
