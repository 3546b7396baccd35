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
	"github.com/promptware-os/pwos/schema"
)

// role is an agent of the demo.
type role struct {
	name    string
	script  []byte
	args    []string
	allow   []string
	restart string

	pid  int64
	now  schema.Descriptor // as far as was looked
	log  *agentLog
	said bytes.Buffer // read from the log, not yet shown
}

// cast has the kernel start r's program in a directory of its own.
func (d *demo) cast(ctx context.Context, c *client.Client, r *role) error {
	script := filepath.Join(d.dir, r.name+".sh")
	if err := os.WriteFile(script, r.script, 0o600); err != nil {
		return fmt.Errorf("write demo agent: %w", err)
	}
	out, err := invokeAs(ctx, c, schema.SyscallSpawn, &schema.SpawnInput{
		ChildAgentID: r.name,
		Capabilities: &schema.SpawnCapability{AllowedSyscalls: r.allow},
		Program:      schema.Program{Command: append([]string{"/bin/sh", script}, r.args...), Restart: &r.restart, Sandbox: &schema.Sandbox{Read: []string{filepath.Dir(script)}}},
	})
	if err != nil {
		return err
	}
	r.pid = out.ChildPID
	r.log = &agentLog{path: filepath.Join(d.dir, "state", "agents", fmt.Sprint(r.pid), "stderr.log"), out: &r.said}
	born, err := describe(ctx, c, r.pid)
	if err != nil {
		return err
	}
	if born.Exit != nil && born.Exit.Reason == notStarted {
		return fmt.Errorf("start demo agent: %s", why(born.Exit))
	}
	d.enter(r, &born)
	return nil
}

// listen shows what the agents say on standard error, until the first of them, who is the one that ends by itself, has ended.
func (d *demo) listen(ctx context.Context, c *client.Client, agents ...*role) (err error) {
	d.heading("They talk. This is what they say on standard error, as it comes.")
	life, err := followLife(ctx, d.options(), 0)
	if err != nil {
		return err
	}
	defer closeInto(&err, life)
	for _, r := range agents {
		defer closeInto(&err, closer(r.log.close))
	}
	first := agents[0]
	for {
		var err error
		if first.now, err = describe(ctx, c, first.pid); err != nil {
			return err
		}
		// What they said before something happened stands before what happened.
		if err := d.hear(agents); err != nil {
			return err
		}
		for _, then := range life.restarts() {
			d.remark(fmt.Sprintf("the kernel starts %s again: it %s", then.AgentID, endText(then.Exit)))
		}
		if gone(&first.now) {
			if value(first.now.Exit.Code) != 0 {
				return fmt.Errorf("play demo: %s %s", first.name, endText(first.now.Exit))
			}
			return nil
		}
		if err := d.pause(ctx, life, agents); err != nil {
			return err
		}
	}
}

// pause shows what the agents say until something happens to one of them.
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

// hear shows what is new in the agents' logs, of the one who spoke first before that of others: an answer comes after its
// question.
func (d *demo) hear(agents []*role) error {
	spoke := make(map[*role]time.Time)
	for _, r := range agents {
		if info, err := os.Stat(r.log.path); err == nil { // else it has said nothing yet
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

// read shows the whole lines that are new in an agent's log.
func (d *demo) read(r *role) error {
	if err := r.log.copy(); err != nil {
		return err
	}
	for {
		line, err := r.said.ReadString('\n')
		if err != nil { // the beginning of a line, or nothing
			r.said.WriteString(line)
			return nil
		}
		d.line(strings.TrimSuffix(line, "\n"))
	}
}
