package main

import (
	"context"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// learnFrom reads the calls of a process and of all that it spawned. A process can grant no more than it holds, and what its
// descendants hold counts against its quota: so the first one needs what any of them needed, and of each resource as much
// as all of them held at once.
func learnFrom(ctx context.Context, c *client.Client, pid int64) (*view.Lesson, error) {
	l := view.NewLesson()
	request := true
	for next := []int64{pid}; len(next) > 0; next = next[1:] {
		l.Agents++
		err := eachPage(ctx, c, schema.AuditLogInput{PID: &next[0], Request: &request}, func(entries []view.Entry, _ bool) error {
			for i := range entries {
				if child := l.Note(&entries[i].AuditEntry); child != 0 {
					next = append(next, child)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(l.Holding) == 0 {
		return l, nil
	}
	exits, first := "Process.Exit", l.Holding[0].Seq
	err := eachPage(ctx, c, schema.AuditLogInput{Type: &exits, Request: &request, SinceSeq: &first}, func(entries []view.Entry, _ bool) error {
		for i := range entries {
			l.NoteExit(&entries[i].AuditEntry)
		}
		return nil
	})
	return l, err
}
