package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// explained is what a start of an agent would give it.
type explained struct {
	schema.ExplainOutput
	name, home string
	login      string // of an agent host; "": it is none
	acp        string // what its tools ask in an editor
	rules      []schema.PolicyRule
}

// explainRun says what an agent could do, without starting it or making anything.
func (a *app) explainRun(ctx context.Context, j *job) error {
	if err := a.hold(ctx, j); err != nil {
		return err
	}
	host, err := hostOf(j.profile.Preset, j.args)
	if err != nil {
		return cli.Misuse("pwos run", err)
	}
	login, err := a.explainLogin(ctx, j, host)
	if err != nil {
		return err
	}
	e := explained{name: j.input.ChildAgentID, login: login, acp: j.explainACP(host), home: cmp.Or(j.home, j.input.Program.Env["HOME"])}
	if e.home == "" {
		homes, err := j.homes()
		if err != nil {
			return err
		}
		e.home = homes.Path(e.name)
	}
	return a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) (err error) {
		if err := ruled(ctx, c, j.profile); err != nil {
			return err
		}
		if j.input.Capabilities, err = j.grant(ctx, c); err != nil {
			return err
		}
		if e.ExplainOutput, err = cli.InvokeAs(ctx, c, schema.ProcessExplain, j.named(e.name)); err != nil {
			return err
		}
		shown, err := cli.InvokeAs(ctx, c, schema.PolicyShow, &schema.PolicyShowInput{})
		if err != nil {
			return err
		}
		e.rules = append(shown.Rules, shippedRules(j.profile.Name, &shown)...)
		if a.WantsJSON() {
			return a.printRunExplainedJSON(&e)
		}
		return a.printRunExplained(&e)
	})
}

// shippedRules returns the rules that are part of the program for a profile, unless the policy that is loaded replaces them.
func shippedRules(profile string, loaded *schema.PolicyShowOutput) (rules []schema.PolicyRule) {
	file := policy.File{Name: "profiles/" + profile + ".cedar", Text: policy.Shipped(profile)}
	if file.Text == nil || loaded.Invalid != "" || slices.Contains(loaded.Files, file.Name) {
		return nil
	}
	set, _ := policy.Compile([]policy.File{file}) // they are valid
	for _, r := range set.Rules {
		shown := schema.PolicyRule{ID: r.ID}
		if r.Ask > 0 {
			shown.Ask = r.Ask.String()
		}
		rules = append(rules, shown)
	}
	return rules
}

// printRunExplainedJSON prints the kernel's answer, with what the client has added to it.
func (a *app) printRunExplainedJSON(e *explained) error {
	text, err := schema.Marshal(&struct {
		Name  string `json:"name"`
		Home  string `json:"home"`
		Login string `json:"login,omitzero"`
		ACP   string `json:"acp,omitzero"`
		schema.ExplainOutput
		Asked   []string `json:"asked"`
		Refused []string `json:"refused"`
	}{e.name, e.home, e.login, e.acp, e.ExplainOutput, e.asked(), e.refused()})
	if err != nil {
		return err
	}
	return a.PrintLine(text)
}

// asked returns the rules of the policy that ask a person, and refused those that refuse.
func (e *explained) asked() []string { return e.rulesThat(true) }

func (e *explained) refused() []string { return e.rulesThat(false) }

func (e *explained) rulesThat(ask bool) []string {
	list := []string{}
	for _, r := range e.rules {
		if (r.Ask != "") == ask {
			list = append(list, r.ID)
		}
	}
	return list
}

func (a *app) printRunExplained(e *explained) error {
	t := new(view.Table)
	part := func(title string, lines ...string) {
		for _, line := range lines {
			if line != "" {
				t.Row(title, line)
				title = ""
			}
		}
	}
	who := view.Escaped(e.name) + " would run in " + cmp.Or(short(e.Dir), "a new directory of its own")
	if e.User != "" {
		who += " as " + view.Escaped(e.User)
	}
	part("agent", who+"; nothing was started")
	part("confined", e.confinement()...)
	part("readable", e.readable()...)
	part("hidden", e.hidden()...)
	part("writable", e.writable()...)
	part("reachable", e.reachable()...)
	part("allowed", strings.Join(shortened(e.Capabilities.AllowedSyscalls), ", "))
	part("asked", listOr(e.asked(), "nothing: no rule of the policy asks"))
	part("refused", listOr(e.refused(), ""))
	part("acp", e.acp)
	part("undone", e.undone()...)
	part("counted", e.counted())
	return a.PrintTable(t)
}

func (e *explained) confinement() []string {
	if e.Level == "off" {
		return []string{"not at all: --sandbox off"}
	}
	lines := []string{e.Level + ", by " + e.Sandbox}
	for _, gap := range e.Gaps {
		lines = append(lines, "not prevented on this machine: "+view.Escaped(gap))
	}
	return lines
}

func (e *explained) readable() []string {
	var lines []string
	switch e.Level {
	case "off":
		return []string{"all that its user may read"}
	case "default":
		lines = append(lines, "what is outside of home directories, and what is not hidden of its user's")
	default:
		lines = append(lines, "programs, libraries and settings of the system")
	}
	lines = append(lines, listOr(paths(e.Read), ""))
	if len(e.Secret) > 0 {
		lines = append(lines, "looks secret, hide it with --hide: "+strings.Join(paths(e.Secret), ", "))
	}
	return lines
}

func (e *explained) hidden() []string {
	if e.HiddenCount == 0 && len(e.Masked) == 0 {
		return []string{"nothing"}
	}
	var lines []string
	if e.HiddenCount > 0 {
		const few = 6
		shown := paths(e.Hidden)
		slices.SortStableFunc(shown, func(a, b string) int { return strings.Index(b, "~/") - strings.Index(a, "~/") }) // what is in the home first
		shown = shown[:min(few, len(shown))]
		text := strings.Join(shown, ", ")
		if more := e.HiddenCount - int64(len(shown)); more > 0 {
			text += " and " + cli.Counted(more, "more place") + " (--json lists them)"
		}
		lines = append(lines, text)
	}
	if len(e.Masked) > 0 {
		lines = append(lines, "until you show it with "+quote.Command("pwos", "project", "allow")+": "+strings.Join(paths(e.Masked), ", "))
	}
	return lines
}

func (e *explained) writable() []string {
	if e.Level == "off" {
		return []string{"all that its user may write"}
	}
	places := paths(e.Write)
	if e.Review != "" {
		places = append([]string{"a copy of " + short(e.Review)}, places...)
	}
	lines := []string{strings.Join(append(places, "its home "+short(e.home), "a /tmp of its own"), ", ")}
	if len(e.Held) > 0 {
		lines = append(lines, "but not, until you allow it, what tools of yours run: "+strings.Join(paths(e.Held), ", "))
	}
	return lines
}

func (e *explained) reachable() []string {
	switch e.Net {
	case "none":
		return []string{"no network"}
	case "open":
		return []string{"the network of its user"}
	}
	var names []string
	if e.Capabilities.HTTP != nil {
		names = append(names, e.Capabilities.HTTP.Hosts...)
	}
	for _, pattern := range e.Capabilities.AllowedSyscalls {
		if service, ok := strings.CutPrefix(pattern, "Upstream:"); ok {
			names = append(names, "the service "+service)
		} else if port, ok := strings.CutPrefix(pattern, "Localhost:"); ok {
			names = append(names, "port "+port+" of this machine")
		}
	}
	return []string{listOr(names, "nothing: --host NAME lets it reach one"), e.login}
}

func (e *explained) undone() []string {
	var lines []string
	if e.Review != "" {
		lines = append(lines, short(e.Review)+" stays as it is until "+quote.Command("pwos", "apply", e.name))
	}
	if len(e.Kept) > 0 {
		lines = append(lines, "every step in "+strings.Join(paths(e.Kept), ", ")+": "+quote.Command("pwos", "undo", e.name))
	}
	for _, why := range e.NotKept {
		lines = append(lines, "not in "+view.Escaped(why))
	}
	if lines == nil {
		lines = append(lines, "nothing: it writes no directory of yours")
	}
	return lines
}

func (e *explained) counted() string {
	var list []string
	if b := e.Capabilities.Budget; b != nil {
		text, err := schema.Marshal(b)
		members, known := view.Members(schema.Value(text))
		if err == nil && known {
			for _, name := range slices.Sorted(maps.Keys(members)) {
				list = append(list, name+" "+string(members[name]))
			}
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(e.Capabilities.ResourceQuotas)) {
		list = append(list, resource+" "+strconv.FormatFloat(e.Capabilities.ResourceQuotas[resource], 'f', -1, 64)+" at once")
	}
	return listOr(list, "nothing")
}

// shortened leaves out syscalls of a long list.
func shortened(list []string) []string {
	const most = 20
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("and %d more (--json lists them)", len(list)-most))
}

func listOr(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}

func paths(list []string) []string {
	shown := make([]string, 0, len(list))
	for _, path := range list {
		shown = append(shown, short(path))
	}
	return shown
}
