package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
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
	if j.compare != nil {
		allow, what = j.compare, "--allow "+strings.Join(j.compare, ",")
	}
	denied := l.denied(allow)
	line := j.commandLine(l)
	if a.wantsJSON() {
		return a.printLine(object(nil).
			text("line", line).
			raw("allow", textList(l.allow())).
			raw("quotas", numbers(l.peaks)).
			raw("would_be_denied", counts(denied)).
			raw("denied_to_all", counts(l.beyond)).
			integer("agents", int64(l.agents)).close())
	}
	if len(l.calls) == 0 {
		a.say("%s called nothing that needs a grant: no grant is needed", agentsText(l.agents))
	} else {
		a.say("%s called what needs a grant, %s", agentsText(l.agents), times(sum(l.calls)))
	}
	for _, typ := range slices.Sorted(maps.Keys(denied)) {
		a.say("  %s would have denied %s, %s", what, typ, times(denied[typ]))
	}
	for _, typ := range slices.Sorted(maps.Keys(l.beyond)) {
		a.say("  %s was denied, %s: only the operator may", typ, times(l.beyond[typ]))
	}
	if len(denied) == 0 {
		a.say("  %s would have denied nothing", what)
	}
	if l.agents > 1 {
		a.say("what it grants to agents that it spawns, by name, it has to hold itself: that cannot be seen in the record")
	}
	if len(l.calls) == 0 {
		a.say("this runs it with none but what everybody may call:")
	} else {
		a.say("this would have been enough:")
	}
	if _, err := fmt.Fprintln(a.stdout, line); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// allow is the smallest grant: the types themselves. A grant names at least one; Syscall.Ping adds nothing to nothing.
func (l *lesson) allow() []string {
	if len(l.calls) == 0 {
		return []string{"Syscall.Ping"}
	}
	return slices.Sorted(maps.Keys(l.calls))
}

// commandLine is how to run the same program with the smallest grant.
func (j *job) commandLine(l *lesson) string {
	words := []string{"pwos", "run", "--allow", strings.Join(l.allow(), ",")}
	for _, resource := range slices.Sorted(maps.Keys(l.peaks)) {
		words = append(words, "--quota", resource+"="+units(l.peaks[resource]))
	}
	words = append(append(words, j.kept...), "--")
	words = append(words, j.args...)
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell reads it back.
func quoted(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=,:@%+", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !safe(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func agentsText(n int) string {
	if n == 1 {
		return "the agent"
	}
	return fmt.Sprintf("the agent and the %d below it", n-1)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

func sum(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

func textList(texts []string) []byte {
	list := []byte("[")
	for i, text := range texts {
		if i > 0 {
			list = append(list, ',')
		}
		list = schema.AppendString(list, text)
	}
	return append(list, ']')
}

func counts(of map[string]int) []byte {
	var o object
	for _, name := range slices.Sorted(maps.Keys(of)) {
		o = o.integer(name, int64(of[name]))
	}
	return o.close()
}

func numbers(of map[string]float64) []byte {
	var o object
	for _, name := range slices.Sorted(maps.Keys(of)) {
		o = o.raw(name, []byte(units(of[name])))
	}
	return o.close()
}
