package main

import (
	"context"
	"strings"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema"
)

// What the tests of run, learn, top and demo look at.
var (
	LimitsOf = limitsOf
	EnvOf    = envOf
	Quoted   = quoted
	Inside   = inside
	Ordinal  = ordinal
	EndText  = endText
	TicksOf  = ticksOf
	Gone     = gone

	StateText   = stateText
	CommandText = commandText
)

// EndStatus is the exit status of run for an agent that ended so.
func EndStatus(d schema.Descriptor) int { return status(ended(d), false) }

// Lesson is what learning makes of calls.
type Lesson struct {
	Allow, Hosts    []string
	Quotas          map[string]float64
	Refused, Denied map[string]int
	Plain, Open     bool
	Children        []int64
}

// Learned is what learning makes of the calls of processes, and what a grant would deny of them.
func Learned(entries []schema.AuditEntry, patterns []string, http *schema.HTTPGrant) (got Lesson) {
	l := newLesson()
	for i := range entries {
		if entries[i].Type == "Process.Exit" {
			l.noteExit(&entries[i])
		} else if child := l.note(&entries[i]); child != 0 {
			got.Children = append(got.Children, child)
		}
	}
	servers := l.servers()
	got.Allow, got.Quotas, got.Refused, got.Denied = l.allow(), l.peaks(), l.refusals(), l.denied(patterns, http)
	got.Hosts, got.Plain, got.Open = servers.hosts, servers.plain, servers.open
	return got
}

// Keys names the keys that a terminal has sent in one piece.
func Keys(typed string) string {
	var names []string
	for _, k := range keysOf([]byte(typed)) {
		switch k {
		case keyUp:
			names = append(names, "up")
		case keyDown:
			names = append(names, "down")
		default:
			names = append(names, string(rune(k)))
		}
	}
	return strings.Join(names, " ")
}

// KeysUntil is readKeys with nobody to take the keys, ended by ctx.
func KeysUntil(ctx context.Context, typed string) (open bool) {
	keys := make(chan key)
	readKeys(ctx, strings.NewReader(typed), keys)
	_, open = <-keys
	return open
}

// Plain is what a plainWriter makes of text that comes in pieces.
func Plain(pieces ...string) (string, error) {
	var b writer
	w := &plainWriter{to: &b}
	for _, piece := range pieces {
		if _, err := w.Write([]byte(piece)); err != nil {
			return "", err
		}
	}
	return string(b), nil
}

// Arranged lists entries as the demo's story does: each by its number, with its depth.
func Arranged(entries []schema.AuditEntry) (seqs []int64, depths []int) {
	var list []auditEntry
	for _, e := range entries {
		list = append(list, auditEntry{AuditEntry: e})
	}
	for _, scene := range arrange(list) {
		seqs, depths = append(seqs, scene.Seq), append(depths, scene.depth)
	}
	return seqs, depths
}

// Chosen moves top's choice over rows of processes of which room are shown: the PID that is chosen then, and the first shown.
func Chosen(pids []int64, room int, chosen int64, moves ...int) (now, first int64) {
	s := &screen{rows: room, chosen: chosen}
	for _, pid := range pids {
		s.tree = append(s.tree, process{Descriptor: schema.Descriptor{PID: pid}})
	}
	for _, by := range moves {
		s.choose(by)
	}
	if len(s.visible()) > 0 {
		first = s.visible()[0].PID
	}
	return s.chosen, first
}

// ProfileFlags are the flags that a profile stands for, as they would be given.
func ProfileFlags(p *config.Profile, dir, home string) (all []string) {
	for _, one := range profileFlags(p, dir, home) {
		for _, value := range one.values {
			all = append(all, "--"+one.name+"="+value)
		}
	}
	return all
}
