package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/examples"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// demoTimeout is the default time limit of the demo. It usually takes two seconds, half of them the pause before a restart.
const demoTimeout = 10 * time.Second

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "boot a kernel, run two agents in it, show what happens, shut it down",
		Long: `demo boots a separate kernel in a temporary directory and runs two agents in it, shell
scripts of a few lines (examples/demo). They talk. One crashes, is started again, and
continues its work. One tries a call that it was not granted. Then demo shows what the
kernel recorded, as a tree of causes, verifies the record, and removes
everything. It does not touch a running kernel.

With --json it prints only the story, one line of JSON for each entry of the record.`,
		Example: `  pwos demo
  pwos demo --json
  NO_COLOR=1 pwos demo | less`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demo(cmd.Context())
		},
	}
}

func (a *app) demo(ctx context.Context) error {
	ctx, cancel := a.Bound(ctx, demoTimeout)
	defer cancel()
	dir, err := temporaryDir("pwos-demo-")
	if err != nil {
		return err
	}
	d := &demo{app: a, dir: dir}
	if err := errors.Join(d.perform(ctx), os.RemoveAll(dir)); err != nil {
		return err
	}
	return d.curtain()
}

// perform starts the kernel, plays the demo, and waits until the kernel and so the agents have ended.
func (d *demo) perform(ctx context.Context) error {
	daemon, err := launchIn(ctx, d.dir)
	if err != nil {
		return err
	}
	if err := d.play(ctx, daemon.PID()); err != nil {
		return errors.Join(err, daemon.Kill(), quietWait(daemon))
	}
	if err := daemon.Wait(); err != nil {
		return fmt.Errorf("end demo kernel: %w", err)
	}
	return nil
}

// demo is the state of a running demo.
type demo struct {
	app *app
	dir string
	err error // the first write error of stdout
}

func (d *demo) options() client.Options { return ownOptions(d.dir) }

// play runs the demo from its connection to the kernel's shutdown.
func (d *demo) play(ctx context.Context, kernelPID int) (err error) {
	c, err := client.Dial(ctx, d.options())
	if err != nil {
		return err
	}
	defer cli.CloseInto(&err, c)
	d.opening(kernelPID)
	clerk := &role{name: "clerk", script: examples.Clerk(), allow: []string{"Ipc.Receive", "Ipc.Ack", "Syscall.SendMsg"}, restart: "on-failure"}
	boss := &role{name: "boss", script: examples.Boss(), allow: []string{"Ipc.Receive", "Syscall.SendMsg"}, restart: "never"}
	if err := d.cast(ctx, c, clerk); err != nil {
		return err
	}
	boss.args = []string{fmt.Sprint(clerk.pid)}
	if err := d.cast(ctx, c, boss); err != nil {
		return err
	}
	if err := d.listen(ctx, c, boss, clerk); err != nil {
		return err
	}
	s, err := d.recall(ctx, c)
	if err != nil {
		return err
	}
	if err := d.story(s); err != nil {
		return err
	}
	proof, err := cli.InvokeAs(ctx, c, schema.AuditVerify, &schema.AuditVerifyInput{})
	if err != nil {
		return err
	}
	if !proof.OK {
		return fault.StateDamaged.New("verify the demo's journal: %s", proof.Broken)
	}
	d.verified(&proof)
	reason := "the demo is over"
	if _, err := cli.Invoke(ctx, c, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: clerk.pid, Reason: &reason}); err != nil {
		return err
	}
	if _, err := c.Shutdown(ctx); err != nil {
		return err
	}
	return d.err
}

// role is an agent of the demo, and its state.
type role struct {
	name    string
	script  []byte
	args    []string
	allow   []string
	restart string

	pid  int64
	now  schema.Descriptor // its latest descriptor
	log  *agentLog
	said bytes.Buffer // output that was read from the log and is not shown yet
}

// cast makes the kernel start the program of r.
func (d *demo) cast(ctx context.Context, c *client.Client, r *role) error {
	script := filepath.Join(d.dir, r.name+".sh")
	if err := os.WriteFile(script, r.script, 0o600); err != nil {
		return fmt.Errorf("write demo agent: %w", err)
	}
	out, err := cli.InvokeAs(ctx, c, schema.SyscallSpawn, &schema.SpawnInput{
		ChildAgentID: r.name,
		Capabilities: &schema.SpawnCapability{AllowedSyscalls: r.allow},
		Program:      schema.Program{Command: append([]string{"/bin/sh", script}, r.args...), Restart: &r.restart, Sandbox: &schema.Sandbox{Read: []string{filepath.Dir(script)}}},
	})
	if err != nil {
		return err
	}
	r.pid = out.ChildPID
	r.log = &agentLog{path: filepath.Join(d.dir, "state", "agents", fmt.Sprint(r.pid), "stderr.log"), out: &r.said}
	born, err := cli.Describe(ctx, c, r.pid)
	if err != nil {
		return err
	}
	if born.Exit != nil && born.Exit.Reason == view.NotStarted {
		return fmt.Errorf("start demo agent: %s", view.Why(born.Exit))
	}
	d.enter(r, &born)
	return nil
}

// listen shows the agents' standard error until the first agent has ended.
func (d *demo) listen(ctx context.Context, c *client.Client, agents ...*role) (err error) {
	d.heading("They talk. This is what they write to standard error:")
	life, err := followLife(ctx, d.options(), 0)
	if err != nil {
		return err
	}
	defer cli.CloseInto(&err, life)
	for _, r := range agents {
		defer cli.CloseInto(&err, cli.Closer(r.log.close))
	}
	first := agents[0]
	for {
		var err error
		if first.now, err = cli.Describe(ctx, c, first.pid); err != nil {
			return err
		}
		// Output that precedes an event is shown before it.
		if err := d.hear(agents); err != nil {
			return err
		}
		for _, then := range life.restarts() {
			d.remark(fmt.Sprintf("the kernel starts %s again: it %s", then.AgentID, view.EndText(then.Exit)))
		}
		if view.Ended(&first.now) {
			if view.Deref(first.now.Exit.Code) != 0 {
				return fmt.Errorf("play demo: %s %s", first.name, view.EndText(first.now.Exit))
			}
			return nil
		}
		if err := d.pause(ctx, life, agents); err != nil {
			return err
		}
	}
}

// pause shows the agents' output until an event of a process or the next poll.
func (d *demo) pause(ctx context.Context, life *life, agents []*role) error {
	look := time.NewTimer(life.pause(longLook))
	defer look.Stop()
	glance := time.NewTicker(5 * time.Millisecond)
	defer glance.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-life.news:
			return nil
		case <-look.C:
			return nil
		case <-glance.C:
			if err := d.hear(agents); err != nil {
				return err
			}
		}
	}
}

// hear shows new output of the agents, in the order of their latest writes, so that an answer follows its question.
func (d *demo) hear(agents []*role) error {
	spoke := make(map[*role]time.Time)
	for _, r := range agents {
		if info, err := os.Stat(r.log.path); err == nil { // without a log, the agent has written nothing yet
			spoke[r] = info.ModTime()
		}
	}
	for _, r := range slices.SortedStableFunc(slices.Values(agents), func(a, b *role) int { return spoke[a].Compare(spoke[b]) }) {
		if err := d.read(r); err != nil {
			return err
		}
	}
	return nil
}

// read shows the new complete lines of an agent's log.
func (d *demo) read(r *role) error {
	if err := r.log.copy(); err != nil {
		return err
	}
	for {
		line, err := r.said.ReadString('\n')
		if err != nil { // an incomplete line, or nothing
			r.said.WriteString(line)
			return nil
		}
		d.line(strings.TrimSuffix(line, "\n"))
	}
}

// temporaryDir creates a temporary directory whose path is short enough for Unix sockets.
func temporaryDir(prefix string) (string, error) {
	base := os.TempDir()
	if len(base) > 60 {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return "", fmt.Errorf("make temporary directory: %w", err)
	}
	return dir, nil
}

// launchIn starts a kernel with all directories in dir. Clients connect with ownOptions(dir).
func launchIn(ctx context.Context, dir string) (*client.Daemon, error) {
	command, err := cli.DaemonCommand()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		return nil, fmt.Errorf("write configuration of own kernel: %w", err)
	}
	command.Env = []string{"HOME=" + dir, "PWOS_STATE_DIR=" + filepath.Join(dir, "state"), "PWOS_CONFIG=" + config}
	return client.Launch(ctx, command, ownOptions(dir).RuntimeDir)
}

// ownOptions returns the client options for the kernel that launchIn started in dir.
func ownOptions(dir string) client.Options {
	return client.Options{RuntimeDir: filepath.Join(dir, "run")}
}

// quietWait waits for a killed kernel. It ignores the exit status.
func quietWait(daemon *client.Daemon) error {
	_ = daemon.Wait()
	return nil
}

// recall reads the whole record as a story.
func (d *demo) recall(ctx context.Context, c *client.Client) (story []view.Sentence, err error) {
	t := d.app.newTimeline([]cli.Asked{{Client: c}}, auditQuestion{queries: true})
	err = t.tell(ctx, func(s *view.Sentence) error {
		story = append(story, *s)
		return nil
	})
	return story, err
}

// text prints prose for people. With --json it prints nothing. The first write error is kept in d.err.
func (d *demo) text(format string, args ...any) {
	if d.err != nil || d.app.JSON {
		return
	}
	if _, err := fmt.Fprintf(d.app.Stdout, format, args...); err != nil {
		d.err = fmt.Errorf("write output: %w", err)
	}
}

// prose wraps text to the terminal's width, but at most to usualWidth.
func (d *demo) prose(text string) string {
	width := d.app.Width()
	if width == 0 || width > usualWidth {
		width = usualWidth
	}
	return view.Hang("", text, width)
}

// usualWidth is the maximum width of prose in columns.
const usualWidth = 94

// below indents text below a heading.
func (d *demo) below(text string) string { return view.Hang("    ", text, d.app.Width()) }

func (d *demo) heading(text string) {
	d.text("\n%s\n", d.app.Style(view.Bold, view.Hang("", text, d.app.Width())))
}

func (d *demo) line(text string) { d.text("%s\n", d.below(view.Escaped(text))) }

func (d *demo) remark(text string) {
	d.text("%s\n", d.app.Style(view.Faint, d.below("("+view.Escaped(text)+")")))
}

func (d *demo) opening(kernelPID int) {
	d.text("%s\n", d.app.Style(view.Faint, d.prose("pwos is a kernel for AI agents. An agent is any program that prints a line of JSON. All that "+
		"it does goes through the kernel: each message is checked against the agent's grant, "+
		"carried out in order, written down, and answered once.")))
	d.heading(fmt.Sprintf("A kernel boots in a temporary directory: process %d.", kernelPID))
	d.heading("It starts two programs, shell scripts of about ten lines. Standard input and output connect them to the kernel.")
}

// enter prints the line that introduces an agent.
func (d *demo) enter(r *role, born *schema.Descriptor) {
	d.text("%s\n", view.Hang(fmt.Sprintf("    %-6s ", r.name), fmt.Sprintf("pid %d, may call %s; sandbox %s; restart %s",
		r.pid, strings.Join(r.allow, ", "), view.Escaped(view.Deref(born.Sandbox)), r.restart), d.app.Width()))
}

// story prints the tree of causes.
func (d *demo) story(story []view.Sentence) error {
	d.heading("This is what the kernel recorded. An indented line was caused by the line above it.")
	for i := range story {
		if d.app.JSON {
			if err := d.app.PrintLine(story[i].JSON()); err != nil {
				return err
			}
			continue
		}
		d.text("%s\n", story[i].Line(d.app.Style))
	}
	return nil
}

func (d *demo) verified(proof *schema.AuditVerifyOutput) {
	d.heading("The record is a chain: each entry holds the hash of the one before it. Verifying it:")
	d.text("    %s, %d entries, the last one's hash is %.16s...\n", d.app.Style(view.Good, "unbroken"), proof.Entries, proof.Head)
}

// curtain prints the end of the demo, after the agents have ended.
func (d *demo) curtain() error {
	d.heading("The agents have ended, the kernel has shut down, and its directory is removed.")
	d.line(`Next: "pwos run -- PROGRAM" runs a program as an agent; see examples/ for some, and docs/agents.md for how to write one.`)
	return d.err
}
