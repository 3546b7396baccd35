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
	if j.allow != nil || j.http != nil {
		what = "what the flags grant"
	}
	if j.allow != nil {
		allow = j.allow
	}
	denied := l.denied(allow, j.http)
	peaks, servers := l.peaks(), l.servers()
	line := j.commandLine(l.allow(), peaks, servers)
	if name := j.learn.name; name != "" {
		if err := j.writeProfile(l, peaks, servers); err != nil {
			return err
		}
		line = "pwos policy reload && " + j.profileLine(name)
		grant, rules := profilePaths(name)
		a.say("the profile is %s, its rules are %s", grant, rules)
	}
	if a.wantsJSON() {
		return a.printLine(object(nil).
			text("line", line).
			raw("allow", textList(l.allow())).
			raw("quotas", numbers(peaks)).
			raw("hosts", textList(servers.hosts)).
			raw("would_be_denied", counts(denied)).
			raw("refused", counts(l.refusals())).
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
	for _, typ := range slices.Sorted(maps.Keys(l.refused)) {
		a.say("  %s was refused although all was granted, %s: %s", typ, times(l.refused[typ].n), escaped(l.refused[typ].why))
	}
	if len(denied) == 0 {
		a.say("  %s would have denied nothing", what)
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

// refusals counts the calls that were refused, by type.
func (l *lesson) refusals() map[string]int {
	n := make(map[string]int, len(l.refused))
	for typ, r := range l.refused {
		n[typ] = r.n
	}
	return n
}

// commandLine is how to run the same program with a grant.
func (j *job) commandLine(allow []string, quotas map[string]float64, servers httpNeed) string {
	words := []string{"pwos", "run", "--allow", strings.Join(allow, ",")}
	for _, resource := range slices.Sorted(maps.Keys(quotas)) {
		words = append(words, "--quota", resource+"="+units(quotas[resource]))
	}
	for _, host := range servers.hosts {
		words = append(words, "--host", host)
	}
	if servers.plain {
		words = append(words, "--http-plain")
	}
	if servers.open {
		words = append(words, "--http-open")
	}
	words = append(append(words, j.kept...), "--")
	words = append(words, j.args...)
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
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
	words = append(append(words, "--"), j.args...)
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
