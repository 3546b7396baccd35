package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// greet says at the first start of an agent host in a project, at a terminal, what it may do, and what its user may.
func (a *app) greet(ctx context.Context, j *job) error {
	dir := j.input.Program.Cwd
	host, err := hostOf(j.profile.Preset, j.args)
	if err != nil || host == nil || dir == nil || j.detach || !a.StderrTerminal() {
		return err
	}
	project, err := projectOf(*dir)
	if err != nil {
		return err
	}
	answer, err := answered(project)
	if err != nil || answer.told {
		return err
	}
	by, err := a.routeOf(ctx, j, host)
	if err != nil {
		return err
	}
	questions := `questions wait in "pwos approvals"`
	if j.attended(a) {
		if chord, err := attention(); err == nil && chord.key != 0 {
			questions = "questions appear here, and " + chord.name + " answers them"
		}
	}
	for _, line := range j.greeting(*dir, by.says(host), questions) {
		a.Say("%s", line)
	}
	a.offerServers(host)
	answer.told = true
	if err := answer.keep(); err != nil || !a.inForeground() || by == nil || by.login == nil || by.held { // else it is not used
		return err
	}
	return a.offerLogins(ctx, j)
}

// greeting returns what the job's agent may do in a directory, in five lines. login says where its login is, questions where people are asked.
func (j *job) greeting(dir, login, questions string) []string {
	name, s := j.input.ChildAgentID, j.input.Program.Sandbox
	runs := fmt.Sprintf("%s runs confined in %s as %q", view.Escaped(j.args[0]), short(dir), name)
	writes := "it writes here and in a home of its own, and reads toolchains; your credentials and .env stay hidden"
	switch {
	case s.Named() == "off":
		runs = fmt.Sprintf("%s runs in %s as %q, without a sandbox", view.Escaped(j.args[0]), short(dir), name)
		writes = "it reads and writes what you may"
	case s != nil && slices.Contains(s.Read, dir):
		writes = "it writes in a home of its own alone, and reads this directory and toolchains; your credentials and .env stay hidden"
	case j.profile.Review:
		writes = "it writes in a copy of this directory and a home of its own, and reads toolchains; your credentials and .env stay hidden"
	}
	reaches := "it reaches any server"
	switch hosts := j.profile.Hosts; {
	case s.Network() == "none":
		reaches = "it reaches no server"
	case s.Network() == "kernel" && j.profile.Host:
		reaches = fmt.Sprintf("it reaches its model, package registries and git hosts, by %d names; no other server", len(hosts))
	case s.Network() == "kernel":
		reaches = fmt.Sprintf("it reaches servers of %d names; no other one", len(hosts))
	}
	reaches += "; " + login
	undo := fmt.Sprintf("every step can be undone: %s; %s shows them", quote.Line("pwos", "undo", name, "--last", "10m"), quote.Line("pwos", "steps", name))
	more := questions + `; more: "pwos console"`
	if j.profile.Name != "" {
		more += fmt.Sprintf("   (profile %s: %s)", view.Escaped(j.profile.Name), quote.Line("pwos", "profile", "show", j.profile.Name))
	}
	return []string{runs, writes, reaches, undo, more}
}

// attended reports whether the job's program is at a terminal, where questions appear.
func (j *job) attended(a *app) bool {
	return j.stdio && !j.noTTY && a.StdinTerminal() && a.StdoutTerminal()
}

// short writes a path as a person would.
func short(path string) string {
	home, err := os.UserHomeDir()
	if rest, below := strings.CutPrefix(path, filepath.Clean(home)+"/"); err == nil && below {
		path = "~/" + rest
	}
	return view.Escaped(path)
}
