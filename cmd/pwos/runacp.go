package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/cmd/pwos/internal/panel"
	"github.com/promptware-os/pwos/door/acp"
	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/door/hookrun"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// wrapper is the program, below the home of a host, that an adapter of ACP starts as the host.
const wrapper = ".pwos/acp"

// speaks returns an error if the host, or its adapter, cannot speak ACP as it is to.
func (j *job) speaks(host *preset.Host) error {
	switch {
	case !j.acp:
		return nil
	case host.ACP == nil:
		return cli.Misuse("pwos acp", fmt.Errorf("%s does not speak ACP: its preset has no acp", host.Name))
	case host.ACP.Adapter == "":
		return nil
	}
	return installed(host.ACP.Package, host.ACP.Adapter)
}

// adapter returns the program of the adapter by which the host is started; "" for none.
func (j *job) adapter(host *preset.Host) string {
	if !j.acp {
		return ""
	}
	return host.ACP.Adapter
}

// adapt makes a start that of a host that speaks ACP. An adapter gets a program that starts the host as it is started without.
func (j *job) adapt(host *preset.Host, start *preset.Start, home string) error {
	if !j.acp {
		return nil
	}
	how, program := host.ACP, &j.input.Program
	maps.Copy(start.Files, how.Files)
	if how.Adapter == "" {
		start.Args = append(start.Args, how.Args...)
		return nil
	}
	adapter, err := commandOf([]string{how.Adapter})
	if err != nil {
		return err
	}
	start.Files[wrapper] = "#!/bin/sh\nset -- " + quote.Line(append(program.Command[:1:1], start.Args...)...) + " \"$@\"\n" + j.script(host) + "exec \"$@\"\n"
	maps.Copy(start.Env, how.Env)
	start.Env[how.Runs] = filepath.Join(home, wrapper)
	start.Args, program.Command = how.Args, append(adapter, program.Command[1:]...)
	return nil
}

// explainACP says what the tools of a host ask in an editor; "" if it runs without one.
func (j *job) explainACP(host *preset.Host) string {
	switch {
	case !j.acp:
		return ""
	case host.Hooked():
		return "each of its tools asks the kernel, by its hook"
	}
	return "it has no hook in an editor: of its tools, only those ask the kernel for which it asks permission; what bounds the others is the sandbox"
}

// acpGate decides for the door of an editor, by the kernel.
type acpGate struct {
	app  *app
	host *preset.Host
	dirs []string      // that the agent works in; nil: any
	pid  int64         // of the agent; set before
	runs chan struct{} // is closed
}

// reaches returns why a session cannot be in a directory, which the agent would find out too.
func (g *acpGate) reaches(dir string) error {
	if g.dirs == nil || filepath.IsAbs(dir) && slices.ContainsFunc(g.dirs, func(of string) bool { return inside(dir, of) }) {
		return nil
	}
	return fmt.Errorf("%s works in %s, and not in %q: have the editor start pwos acp there, or with --dir", g.host.Name, g.dirs[0], dir)
}

// decide asks the kernel whether the agent may use a tool. The hook of a host asks for each tool itself, with its name and all of its input:
// then a question is the hook's to raise, and the kernel is asked here what it would say.
func (g *acpGate) decide(ctx context.Context, use *acp.Use) (allowed bool, why string) {
	select {
	case <-g.runs:
	case <-ctx.Done():
		return false, context.Cause(ctx).Error()
	}
	names := g.host.Tools.Named(use.Kind)
	for _, name := range slices.Concat(g.host.Tools.Read, g.host.Tools.Write, g.host.Tools.Run, g.host.Tools.Search) {
		if use.Tool == "" && (strings.HasPrefix(use.ID, name+"-") || strings.HasPrefix(use.ID, name+"__")) { // so does Gemini CLI
			use.Tool = name
		}
	}
	if use.Tool != "" {
		names = []string{schema.HostTool(use.Tool)}
	}
	if !g.host.Hooked() { // of all that it may be, the first that is not simply allowed decides
		names = names[max(0, slices.IndexFunc(names, func(name string) bool { return !g.granted(ctx, name, use) })):][:1]
	}
	for _, name := range names {
		if allowed, why = g.may(ctx, name, use); allowed || ctx.Err() != nil {
			use.Tool = name
			break
		}
	}
	return allowed, why
}

// input is what the kernel is asked about a tool.
func (g *acpGate) input(name string, use *acp.Use) *schema.ToolUseInput {
	in := &schema.ToolUseInput{Host: g.host.Name, Session: use.Session, Tool: name, Target: schema.Target{PID: &g.pid}}
	in.Input, in.Cut = hook.Short(use.Input)
	return in
}

// granted reports whether the kernel would let the agent use a tool without a question.
func (g *acpGate) granted(ctx context.Context, name string, use *acp.Use) (yes bool) {
	err := g.app.With(ctx, cli.UsualTimeout, g.app.DialRunning, func(ctx context.Context, c *client.Client) error {
		out, err := check(ctx, c, g.input(name, use))
		yes = err == nil && out.Allowed
		return err
	})
	return yes && err == nil
}

// check asks the kernel what it would say about the use of a tool.
func check(ctx context.Context, c *client.Client, in *schema.ToolUseInput) (out schema.CheckOutput, err error) {
	data, err := schema.Marshal(in)
	if err != nil {
		return out, err
	}
	return cli.InvokeAs(ctx, c, schema.CapabilityCheck, &schema.CheckInput{PID: in.PID, Syscall: schema.HostToolUse.Type, Data: data})
}

// may asks the kernel about one tool. It waits as long as a person takes to answer.
func (g *acpGate) may(ctx context.Context, name string, use *acp.Use) (allowed bool, why string) {
	in := g.input(name, use)
	if f := in.Check(); f != nil {
		return false, f.Text()
	}
	err := fault.ApprovalPending.New("nobody was asked yet")
	for errors.Is(err, fault.Pending) && ctx.Err() == nil { // the same call waits for the same question
		var failed error
		if allowed, why, failed = g.ask(ctx, in, use.ID); failed == nil {
			return allowed, why
		}
		if err = fault.Of(failed); errors.Is(err, fault.Pending) && !hookrun.Again(ctx) {
			break
		}
	}
	return false, err.Text()
}

// longestWait is longer than a kernel lets a call wait for an answer.
const longestWait = 70 * time.Minute

// ask asks the kernel once, on a connection of its own, since calls behind one that waits for an answer wait too.
func (g *acpGate) ask(ctx context.Context, in *schema.ToolUseInput, id string) (allowed bool, why string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestWait, cli.ErrTimeout)
	defer cancel()
	c, err := g.app.DialRunning(ctx)
	if err != nil {
		return false, "", err
	}
	defer cli.CloseInto(&err, c)
	if !g.host.Hooked() {
		out, err := cli.InvokeAs(ctx, c, schema.HostToolUse, in)
		if err != nil || out.Decision != schema.ToolAllow {
			return false, out.Reason, err
		}
		step := &schema.StepBeginInput{Target: in.Target, Host: in.Host, Session: in.Session, Tool: in.Tool}
		if len(id) > 0 && len(id) <= 256 {
			step.Use = &id
		}
		if _, err := cli.InvokeAs(ctx, c, schema.StepBegin, step); err != nil {
			g.app.Say("%s is allowed, and what it changes is not kept as a step of its own: %v", in.Tool, err)
		}
		return true, "", nil
	}
	out, err := check(ctx, c, in)
	return out.Allowed || out.Error == string(fault.ApprovalPending), out.Reason, err
}

// ended ends the step of a use for which the host has no hook that does.
func (g *acpGate) ended(use *acp.Use, failed bool) {
	in := &schema.StepEndInput{Target: schema.Target{PID: &g.pid}, Host: g.host.Name, Session: use.Session, Tool: use.Tool, Failed: &failed}
	if len(use.ID) <= 256 {
		in.Use = &use.ID
	}
	err := g.app.With(context.Background(), cli.UsualTimeout, g.app.DialRunning, func(ctx context.Context, c *client.Client) error {
		_, err := cli.InvokeAs(ctx, c, schema.StepEnd, in)
		return err
	})
	if err != nil {
		g.app.Say("the step of %s does not end: %v", use.Tool, err)
	}
}

// acpScreen shows the questions of an agent in its editor, whose user answers them.
type acpScreen struct {
	ctx     context.Context
	app     *app
	door    *acp.Door
	answers chan panel.Answer
	asked   map[string]context.CancelFunc // by the question's id
	workers sync.WaitGroup
}

func (s *acpScreen) Ask(q *panel.Question) {
	if s.asked[q.ID] != nil {
		return
	}
	ctx, cancel := context.WithDeadline(s.ctx, q.Expires)
	s.asked[q.ID] = cancel
	s.workers.Go(func() {
		defer cancel()
		answer, err := s.door.Ask(ctx, &acp.Question{Title: q.View.Sentence(), Detail: detail(q.View)})
		if err != nil && ctx.Err() == nil {
			s.app.Say("%s was not shown in the editor, and waits in %s: %v", q.ID, quote.Command("pwos", "approvals"), err)
		}
		if answer == acp.None || ctx.Err() != nil {
			return
		}
		a := panel.Answer{Question: q, Approve: answer != acp.Refuse}
		if answer == acp.Hour {
			a.For = time.Hour
		}
		select {
		case s.answers <- a:
		case <-s.ctx.Done():
		}
	})
}

// detail returns a question in full.
func detail(q *view.Question) string {
	lines := append([]string{q.Agent + " wants to " + q.Does}, q.What...)
	for _, fact := range q.Facts {
		lines = append(lines, fact[0]+": "+fact[1])
	}
	return strings.Join(append(lines, q.More...), "\n")
}

func (s *acpScreen) End(id, _ string) {
	if cancel := s.asked[id]; cancel != nil {
		cancel()
	}
}

func (s *acpScreen) Decided(id, how string, err error) {
	if err != nil {
		s.app.Say("%s was not %s: %v", id, how, err)
	}
}

func (s *acpScreen) Tick() {}

func (s *acpScreen) Busy() bool { return false }
