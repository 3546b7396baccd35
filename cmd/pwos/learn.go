package main

import (
	"context"
	"slices"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// learnFrom derives a grant from the calls of a process and its descendants. The process needs every right that any of them
// used, since it can grant no more than it has. Of each resource it needs the peak of what all of them held together,
// since what descendants hold counts against its quota.
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

// learned prints the grant that the agent of j needs, and the calls that the flags, or the default grant, would have denied.
func (a *app) learned(ctx context.Context, c *client.Client, j *job, pid int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	l, err := learnFrom(ctx, c, pid)
	if err != nil {
		return err
	}
	const ofDefault = "the default grant"
	allow, what := defaultGrant(), ofDefault
	var http *schema.HTTPGrant
	if given := j.profile.Capability(); given != nil {
		http = given.HTTP
	}
	if j.profile.Allow != nil || http != nil {
		what = "what the flags grant"
	}
	if j.profile.Allow != nil {
		allow = j.profile.Allow
	}
	denied := l.Denied(allow, http)
	peaks, servers := l.Peaks(), l.Servers()
	line := l.CommandLine(j.kept, j.args)
	if name := j.learn.name; name != "" {
		if err := j.writeProfile(l, peaks, servers); err != nil {
			return err
		}
		line = "pwos policy reload && " + quote.Line(slices.Concat([]string{"pwos", "run", "--profile", name}, j.unboxed, []string{"--"}, j.args)...)
		grant, rules := profilePaths(name)
		a.Say("the profile is %s, its rules are %s", grant, rules)
	}
	if a.WantsJSON() {
		return a.PrintLine(l.JSON(line, denied))
	}
	for _, text := range l.Report(what, denied) {
		a.Say("%s", text)
	}
	return a.PrintText(line)
}
