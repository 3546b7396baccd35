package main

import (
	"context"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// auditEntry is an entry of the audit log, with the JSON that it came as.
type auditEntry struct {
	schema.AuditEntry

	raw schema.Value
}

// auditPart is what one Audit.Log has answered; next is 0 where there is no more for now.
type auditPart struct {
	entries []auditEntry
	next    int64
}

// auditPage asks for a page of the log.
func auditPage(ctx context.Context, c *client.Client, meta schema.Metadata, in *schema.AuditLogInput) (page auditPart, err error) {
	const typ = "Audit.Log"
	answer, err := request(ctx, c, schema.Message{Type: typ, Meta: meta}, in)
	if err != nil {
		return page, err
	}
	members, _ := objectOf(answer.Data)
	page.next, _ = valueOf[int64](members["next"])
	list, _ := arrayOf(members["entries"])
	for _, raw := range list {
		e, err := answerAs[schema.AuditEntry](typ, raw)
		if err != nil {
			return page, err
		}
		page.entries = append(page.entries, auditEntry{e, raw})
	}
	return page, nil
}

// eachPage reads the log that in asks for page by page, from the first entry on, until do returns false. more says that there
// is another page.
func eachPage(ctx context.Context, c *client.Client, in schema.AuditLogInput, do func(entries []auditEntry, more bool) bool) error {
	limit := int64(listPage)
	in.Limit = &limit
	for {
		page, err := auditPage(ctx, c, schema.Metadata{}, &in)
		if err != nil {
			return err
		}
		if !do(page.entries, page.next != 0) || page.next == 0 {
			return nil
		}
		in.SinceSeq = &page.next
	}
}

// auditFeed shows entries as they come.
type auditFeed struct{ *feed }

func newAuditFeed(a *app) auditFeed {
	return auditFeed{newFeed(a, column{"seq", 7}, column{"time", 23}, column{"pid", 4}, column{"type", 22}, column{"took", 7}, column{"result", 0})}
}

func (f auditFeed) entry(e *auditEntry) error {
	result := f.app.style(good, "ok")
	switch {
	case e.Status == schema.StatusRunning:
		result = f.app.style(faint, "running")
	case e.Status == schema.StatusUnknown && e.Error == "":
		result = f.app.style(bad, "unknown: it ended, and that could not be recorded")
	case !e.Success:
		result = f.app.style(bad, escaped(string(e.Error)))
		if exceptable(fault.ID(e.ErrorID)) {
			result += f.app.style(faint, ", see "+exception(e.Seq))
		}
	}
	return f.write(e.raw,
		strconv.FormatInt(e.Seq, 10),
		time.UnixMilli(e.Time).Format("2006-01-02 15:04:05.000"),
		strconv.FormatInt(e.PID, 10),
		e.Type,
		microseconds(e.LatencyUS),
		result)
}
