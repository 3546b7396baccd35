package main

import (
	"context"
	"os"

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

// ToolUse is what `pwos hook run` says of a question to the kernel in a directory, "" where the tool may be used.
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
