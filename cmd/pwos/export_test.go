package main

import (
	"context"
	"fmt"
	"os"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// What the tests of this package look at.
var (
	Status    = status
	Advice    = advice
	BuildData = buildData
	CutMode   = cutMode
	ErrSeen   = errSeen

	LastFailure = lastFailure
)

// TimedOut is the cause of a context that --timeout has ended.
func TimedOut() error {
	a := app{timeout: 1}
	ctx, cancel := a.bound(context.Background(), 0)
	defer cancel()
	<-ctx.Done()
	return context.Cause(ctx)
}

// Usage is an error of wrong usage.
func Usage(err error) error { return misuse("pwos call", err) }

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// Newest is the numbers of the last entries that pages answer with; see newest. A page is the numbers of its entries, and
// where the next one begins.
func Newest(floor, last, most int64, page func(since, limit int64) (seqs []int64, next int64)) ([]int64, error) {
	found, err := newest(floor, last, most, func(since, limit int64) (part auditPart, err error) {
		seqs, next := page(since, limit)
		for _, seq := range seqs {
			part.entries = append(part.entries, view.Entry{AuditEntry: schema.AuditEntry{Seq: seq}})
		}
		part.next = next
		return part, nil
	})
	var seqs []int64
	for _, e := range found {
		seqs = append(seqs, e.Seq)
	}
	return seqs, err
}

// PrintedStatus writes the status of a kernel that refuses commands for that reason to out, as JSON.
func PrintedStatus(out *os.File, refusing string) error {
	a := app{stdout: out, json: true}
	return a.printStatus(kernelInfo{condition: condition{refusing: refusing}})
}

// LastLines is what `pwos logs --lines` shows.
func LastLines(text string, lines int64) string { return string(lastLines([]byte(text), lines)) }

// Bearer reads the token of `pwos mcp serve --http`, or makes it.
func Bearer(file string) (string, error) { return bearer(file) }

// ToolUse is what `pwos hook run` says of a question to the kernel in a directory, "" if the tool may be used.
func ToolUse(ctx context.Context, question *os.File, dir string) string {
	a := newApp(question, os.Stdout, os.Stderr)
	a.runtimeDir, a.timeout = dir, usualTimeout
	return a.toolUse(ctx, "claude", &door.Agent{Name: "claude"})
}

// UndoneModes is what is written to a terminal to undo what a program has printed, a byte at a time.
func UndoneModes(printed string) string {
	var out writer
	m := terminalModes{to: &out}
	for i := range len(printed) {
		_, _ = m.Write([]byte{printed[i]})
	}
	out = nil
	_ = m.undo()
	return string(out)
}

// MergedPages reads the records of kernels as one time line, page by page: pages returns the entries of a record after one, and
// where the next page begins. It returns each entry as alpha:3, and the kernels that were missing.
func MergedPages(limit int64, names []string, pages func(kernel string, since int64) (entries []schema.AuditEntry, next int64, err error)) (read, missing []string, err error) {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	list := make([]asked, len(names))
	for i, name := range names {
		list[i].kernel = name
	}
	q := auditQuestion{}
	if limit > 0 {
		q.Limit = &limit
	}
	a.json = true
	t := a.newTimeline(list, q)
	t.names = func(context.Context, *client.Client) (view.Names, error) { return view.Names{}, nil }
	t.end = nil
	t.missing.show = func(kernel string, _ error) error {
		missing = append(missing, kernel)
		return nil
	}
	for _, r := range t.records {
		r.fetch = func(_ context.Context, since, _ int64) (part auditPart, err error) {
			entries, next, err := pages(r.kernel, since)
			for _, e := range entries {
				part.entries = append(part.entries, view.Entry{AuditEntry: e})
			}
			part.next = next
			return part, err
		}
	}
	err = t.each(context.Background(), func(r *record, e *view.Entry) error {
		read = append(read, fmt.Sprint(r.kernel, ":", e.Seq))
		return nil
	})
	return read, missing, err
}
