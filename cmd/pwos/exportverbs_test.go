package main

import (
	"context"
	"errors"
	"os"

	"github.com/promptware-os/pwos/schema/fault"
)

// What the tests of the verbs look at.
var (
	PIDOf    = pidOf
	QuotasOf = quotasOf
	WithRaw  = withRaw
)

// Misused is why a command line makes no sense; no kernel is asked. "" if it makes sense.
func Misused(ctx context.Context, args ...string) string {
	root := newRoot(newApp(os.Stdin, os.Stdout, os.Stderr))
	root.SetArgs(append([]string{"--no-spawn", "--runtime-dir", os.DevNull}, args...))
	err := root.ExecuteContext(ctx)
	if !errors.Is(err, fault.UsageInvalid) {
		return ""
	}
	return err.Error()
}

// Subjects returns the verbs, those that the help lists below no subject, and how many are below each.
func Subjects() (verbs, outside []string, subjects map[string]int) {
	root := newRoot(newApp(os.Stdin, os.Stdout, os.Stderr))
	root.InitDefaultHelpCmd()
	subjects = make(map[string]int)
	for _, group := range root.Groups() {
		subjects[group.ID] = 0
	}
	for _, verb := range root.Commands() {
		verbs = append(verbs, verb.Name())
		if _, ok := subjects[verb.GroupID]; !ok {
			outside = append(outside, verb.Name())
		}
		subjects[verb.GroupID]++
	}
	return verbs, outside, subjects
}
