package main

import (
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

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
