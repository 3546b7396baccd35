package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/cmd/pwos/internal/panel"
	"github.com/promptware-os/pwos/door/hookrun"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// Functions and values that the tests use.
var (
	BuildData = buildData
	CutMode   = cutMode

	LastFailure = lastFailure
)

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// Newest returns the numbers of the entries that newest returns. page returns the numbers of the entries of a page, and the number
// after which the next page begins.
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

// PrintedStatus writes to out, as JSON, the status of a kernel that refuses commands for the given reason.
func PrintedStatus(out *os.File, refusing string) error {
	a := app{App: &cli.App{Stdout: out, JSON: true}}
	return a.printStatus(kernelInfo{condition: condition{refusing: refusing}})
}

// LastLines returns the output of `pwos logs --lines`.
func LastLines(text string, lines int64) string { return string(lastLines([]byte(text), lines)) }

// Bearer reads the token of `pwos mcp serve --http`, and creates the file if it does not exist.
func Bearer(file string) (string, error) { return bearer(file) }

// RunHook runs `pwos hook run` of Claude Code, and returns its exit status and what it writes to stderr. What it writes to stdout is the
// file stdout in dir, where the kernel's socket is too.
func RunHook(ctx context.Context, question *os.File, dir string, args ...string) (status int, said string, err error) {
	stdout, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = stdout.Close() }() // it is read by its name
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = stderr.Close() }() // it is read by its name
	a := newApp(question, stdout, stderr)
	a.RuntimeDir, a.Timeout = dir, cli.UsualTimeout
	cmd := newHookRun(a)
	cmd.SetArgs(append([]string{"claude", "--as", "claude"}, args...))
	ran := cmd.ExecuteContext(ctx)
	if ran != nil && !errors.As(ran, new(cli.ExitStatus)) {
		return 0, "", ran
	}
	if ran != nil {
		status = hookrun.DenyStatus
	}
	text, err := os.ReadFile(stderr.Name())
	return status, string(text), err
}

// UndoneModes returns what is written to the terminal to undo a program's output, which it processes byte by byte.
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

// MergedPages reads the records of kernels as one timeline, page by page. pages returns the entries of a kernel's record after since, and
// the number after which the next page begins. MergedPages returns each entry in the form alpha:3, and the kernels that did not answer.
func MergedPages(limit int64, names []string, pages func(kernel string, since int64) (entries []schema.AuditEntry, next int64, err error)) (read, missing []string, err error) {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	list := make([]cli.Asked, len(names))
	for i, name := range names {
		list[i].Kernel = name
	}
	q := auditQuestion{}
	if limit > 0 {
		q.Limit = &limit
	}
	a.JSON = true
	t := a.newTimeline(list, q)
	t.names = func(context.Context, *client.Client) (view.Names, error) { return view.Names{}, nil }
	t.end = nil
	t.missing.Show = func(kernel string, _ error) error {
		missing = append(missing, kernel)
		return nil
	}
	for _, r := range t.records {
		r.fetch = func(_ context.Context, since, _ int64) (part auditPart, err error) {
			entries, next, err := pages(r.Kernel, since)
			for _, e := range entries {
				part.entries = append(part.entries, view.Entry{AuditEntry: e})
			}
			part.next = next
			return part, err
		}
	}
	err = t.each(context.Background(), func(r *record, e *view.Entry) error {
		read = append(read, fmt.Sprint(r.Kernel, ":", e.Seq))
		return nil
	})
	return read, missing, err
}

// Asks reports whether a program's output, which it processes byte by byte, asks the terminal something.
func Asks(printed string) bool {
	m := terminalModes{to: io.Discard}
	for i := range len(printed) {
		_, _ = m.Write([]byte{printed[i]})
	}
	return m.asked
}

// Notified returns what the terminal is sent, and which program is run, for a question in an environment.
func Notified(env, text string) (sent, run string) {
	n := notifierIn(env)
	n.run = func(_ context.Context, path string, args ...string) {
		run = strings.Join(append([]string{path}, args...), " ")
	}
	sent = n.notify(text)
	n.workers.Wait()
	return sent, run
}

// StoppedNotice returns why a notification ends whose program does not, when the terminal is given back.
func StoppedNotice(env string) (why error) {
	n := notifierIn(env)
	n.run = func(ctx context.Context, _ string, _ ...string) {
		<-ctx.Done()
		why = ctx.Err()
	}
	n.notify("text")
	n.stop()
	return why
}

func notifierIn(env string) *notifier {
	n := newNotifier(func(name string) string {
		for word := range strings.FieldsSeq(env) {
			if value, ok := strings.CutPrefix(word, name+"="); ok {
				return value
			}
		}
		return ""
	})
	n.find = func(program string) (string, error) { return "/bin/" + program, nil }
	return n
}

// Questions are those of the agent with pid 1, as pwos run shows them. describe stands for the kernel.
func Questions(p *panel.Panel, describe func(ctx context.Context, pid int64) (schema.Descriptor, error)) (serve func(context.Context), news chan<- schema.ApprovalState) {
	q := newQuestions(1, p, make(chan panel.Answer, 1))
	q.describe = describe
	return q.serve, q.news
}
