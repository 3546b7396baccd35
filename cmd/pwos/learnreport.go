package main

import (
	"context"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/view"
)

// learned prints what the agent of j would have needed, and what it would have been denied without.
func (a *app) learned(ctx context.Context, c *client.Client, j *job, pid int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, usualTimeout, errTimeout)
	defer cancel()
	l, err := learnFrom(ctx, c, pid)
	if err != nil {
		return err
	}
	const ofDefault = "the default grant"
	allow, what := defaultGrant(), ofDefault
	if j.allow != nil || j.http != nil {
		what = "what the flags grant"
	}
	if j.allow != nil {
		allow = j.allow
	}
	denied := l.Denied(allow, j.http)
	peaks, servers := l.Peaks(), l.Servers()
	line := l.CommandLine(j.kept, j.args)
	if name := j.learn.name; name != "" {
		if err := j.writeProfile(l, peaks, servers); err != nil {
			return err
		}
		line = "pwos policy reload && " + j.profileLine(name)
		grant, rules := profilePaths(name)
		a.say("the profile is %s, its rules are %s", grant, rules)
	}
	if a.wantsJSON() {
		return a.printLine(l.JSON(line, denied))
	}
	for _, text := range l.Report(what, denied) {
		a.say("%s", text)
	}
	return a.printText(line)
}

// profileLine is how to run the same program under a profile.
func (j *job) profileLine(name string) string {
	words := []string{"pwos", "run", "--profile", name}
	for _, flag := range j.kept {
		given, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if !slices.Contains([]string{"sandbox", "net", "read", "write", "hide"}, given) { // which the profile has
			words = append(words, flag)
		}
	}
	return view.ShellLine(append(append(words, "--"), j.args...))
}
