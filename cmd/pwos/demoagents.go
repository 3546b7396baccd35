package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

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
