package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// recall reads the whole record.
func recall(ctx context.Context, c *client.Client, names map[int64]string) (*view.Story, error) {
	var all []view.Entry
	err := eachPage(ctx, c, schema.AuditLogInput{}, func(entries []view.Entry, _ bool) error {
		all = append(all, entries...)
		return nil
	})
	return &view.Story{Names: names, Scenes: view.Arrange(all)}, err
}

// text writes for people: with --json, stdout has the story alone. What stdout does not take ends the demo at its end.
func (d *demo) text(format string, args ...any) {
	if d.err != nil || d.app.json {
		return
	}
	if _, err := fmt.Fprintf(d.app.stdout, format, args...); err != nil {
		d.err = fmt.Errorf("write output: %w", err)
	}
}

// prose is text in lines that are easily read: of the terminal's width, or of the usual one where that is wider.
func (d *demo) prose(text string) string {
	width := d.app.width()
	if width == 0 || width > usualWidth {
		width = usualWidth
	}
	return view.Hang("", text, width)
}

// usualWidth is how long a line of prose is where there is room, in characters.
const usualWidth = 94

// below is text that stands below a heading.
func (d *demo) below(text string) string { return view.Hang("    ", text, d.app.width()) }

func (d *demo) heading(text string) {
	d.text("\n%s\n", d.app.style(view.Bold, view.Hang("", text, d.app.width())))
}

func (d *demo) line(text string) { d.text("%s\n", d.below(view.Escaped(text))) }

func (d *demo) remark(text string) {
	d.text("%s\n", d.app.style(view.Faint, d.below("("+view.Escaped(text)+")")))
}

func (d *demo) opening(kernelPID int) {
	d.text("%s\n", d.app.style(view.Faint, d.prose("pwos is a kernel for AI agents. An agent is any program that prints a line of JSON. All that "+
		"it does goes through the kernel: each message is checked against what the agent was granted, "+
		"carried out in order, written down, and answered once.")))
	d.heading(fmt.Sprintf("A kernel boots in a temporary directory: process %d.", kernelPID))
	d.heading("It starts two programs, shell scripts of some ten lines. Standard input and output are their way to the kernel.")
}

// enter introduces an agent.
func (d *demo) enter(r *role, born *schema.Descriptor) {
	d.text("%s\n", view.Hang(fmt.Sprintf("    %-6s ", r.name), fmt.Sprintf("pid %d, may call %s; sandbox %s; restart %s",
		r.pid, strings.Join(r.allow, ", "), view.Escaped(view.Deref(born.Sandbox)), r.restart), d.app.width()))
}

// story writes what caused what.
func (d *demo) story(s *view.Story) error {
	if d.app.json {
		for i := range s.Scenes {
			if err := d.app.printLine(s.Line(&s.Scenes[i])); err != nil {
				return err
			}
		}
		return nil
	}
	d.heading("What the kernel wrote down of it. What stands below a line, further in, was caused by it.")
	t := s.Table(d.app.style)
	t.Width = d.app.width()
	d.text("%s", t.Text())
	return nil
}

func (d *demo) verified(proof *schema.AuditVerifyOutput) {
	d.heading("The record is a chain: each entry holds the hash of the one before it. It is checked now.")
	d.text("    %s, %d entries, the last one's hash is %.16s...\n", d.app.style(view.Good, "unbroken"), proof.Entries, proof.Head)
}

// curtain ends the demo, once all is gone.
func (d *demo) curtain() error {
	d.heading("The agents are gone, the kernel has shut down, and its directory is removed.")
	d.line(`Next: "pwos run -- PROGRAM" runs a program as an agent; examples/ has some, docs/agents.md tells how to write one.`)
	return d.err
}
