package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema/fault"
)

// Misused returns the usage error of a command line; "" if it has none. It contacts no kernel.
func Misused(ctx context.Context, args ...string) string {
	root := newRoot(newApp(os.Stdin, os.Stdout, os.Stderr))
	root.SetArgs(append([]string{"--no-spawn", "--runtime-dir", os.DevNull}, args...))
	err := root.ExecuteContext(ctx)
	if !errors.Is(err, fault.UsageInvalid) {
		return ""
	}
	return err.Error()
}

// Tree returns the root of all verbs.
func Tree() *cobra.Command { return newRoot(newApp(os.Stdin, os.Stdout, os.Stderr)) }

// Line returns the root that a command line has.
func Line(line ...string) *cobra.Command {
	return newRoot(newApp(os.Stdin, os.Stdout, os.Stderr), line...)
}

// Subjects returns all verbs, the verbs that belong to no group of the help, and the number of verbs in each group.
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
