package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/cmd/pwos/internal/gitdirs"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// Bounds of what is asked: nobody reads more. The rest is left to "pwos git".
const (
	mostAsked    = 20   // changes
	longestAsked = 2000 // characters of a change, as displayed
	mostLines    = 40   // of a hook
)

// askGit asks about changes of an agent, one by one, and returns those without an answer. The answer is a word: the agent's
// last output may have made its user press a key at the moment at which the question appears.
func (a *app) askGit(ctx context.Context, store gitdirs.Store, left []gitdirs.Change) (rest []gitdirs.Change, err error) {
	if len(left) > mostAsked {
		return left, nil
	}
	for i := range left {
		change := &left[i]
		about, ok := describeChange(change)
		if !ok {
			rest = append(rest, *change)
			continue
		}
		for _, line := range about {
			a.Say("%s", line)
		}
		word, err := cli.AskWord(ctx, `pwos: do the same for you? "yes" does, Enter drops it, Ctrl-C keeps it for "pwos git" [yes/NO] `)
		if err != nil { // an interrupt, or the terminal is gone
			return append(rest, left[i:]...), nil
		}
		if err := store.Answer(ctx, change, strings.EqualFold(strings.TrimSpace(word), "yes")); err != nil {
			a.Say("git: %s: %v", view.Escaped(changeName(change)), err)
			rest = append(rest, *change)
		}
	}
	return rest, store.Clean(ctx)
}

// describeChange returns lines that say what a change is; ok is false if they would be too long, or if it cannot be made.
func describeChange(c *gitdirs.Change) (lines []string, ok bool) {
	did := "changed"
	switch {
	case c.Is == nil:
		did = "removed"
	case c.Base == nil:
		did = "added"
	}
	line := fmt.Sprintf("git: the agent %s %s in %s", did, view.Escaped(changeName(c)), view.Escaped(c.File))
	if c.Runs() {
		line += ": your git would run it, or what it names"
	}
	lines = append(lines, line)
	if c.IsSetting() {
		if !slices.Equal(c.Base, c.Was) {
			lines = append(lines, "  at its start: "+shownValues(c.Base))
		}
		lines = append(lines, "  yours now:    "+shownValues(c.Was), "  the agent's:  "+shownValues(c.Is))
	} else {
		if !slices.Equal(c.Base, c.Was) {
			lines = append(lines, "  you have changed it too since its start")
		}
		if c.Is != nil {
			text, mode, err := c.Text()
			if err != nil {
				return nil, false
			}
			content := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			if len(content) > mostLines {
				return nil, false
			}
			lines = append(lines, fmt.Sprintf("  the agent's, of mode %o:", mode))
			for _, line := range content {
				lines = append(lines, "  | "+view.Escaped(line))
			}
		}
	}
	return lines, utf8.RuneCountInString(strings.Join(lines, "")) <= longestAsked
}

// shownValues is the value of a key, quoted so that nothing of it is interpreted, and several are told apart.
func shownValues(values []string) string {
	if values == nil {
		return "(none)"
	}
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = quote.Word(strings.Replace(value, gitdirs.NoValue, "true", 1))
	}
	return strings.Join(list, " ")
}
