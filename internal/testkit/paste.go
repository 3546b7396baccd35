package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Shells are the shells that people paste commands into, with the arguments before a command. Those that are not installed
// are left out.
func Shells() (shells [][]string) {
	for _, shell := range [][]string{
		{"sh", "-c"},
		{"dash", "-c"},
		{"bash", "--norc", "-c"},
		{"zsh", "-f", "-c"},
		{"fish", "--no-config", "-c"},
		// As at a terminal, where bash replaces what follows an exclamation mark.
		{"bash", "--norc", "--noprofile", "-i", "-c"},
		{"bash", "--norc", "--noprofile", "-i", "-s"},
	} {
		if path, err := exec.LookPath(shell[0]); err == nil {
			shells = append(shells, append([]string{path}, shell[1:]...))
		}
	}
	return shells
}

// Desk is a place where a test pastes commands into a shell. The only program there is pwos, which notes its arguments.
type Desk struct{ bin, dir, log string }

// NewDesk makes a desk. Further programs do the same as pwos, so that it is seen if one of them is executed.
func NewDesk(t testing.TB, programs ...string) *Desk {
	t.Helper()
	d := &Desk{Dir(t), Dir(t), filepath.Join(Dir(t), "log")}
	for _, name := range append(programs, "pwos") {
		// Written by another process: a program cannot be executed while a fork of this one has it open.
		Must(t, exec.Command("sh", "-c", `printf '%s\n' "$1" >"$0" && chmod 700 "$0"`, filepath.Join(d.bin, name), //nolint:gosec // constants
			"#!/bin/sh\nprintf '%s\\036' \"${0##*/}\" \"$@\" >>'"+d.log+"'\nprintf '\\035' >>'"+d.log+"'").Run())
	}
	return d
}

// Paste has a shell of Shells read a line, and returns the command lines that it executed. It fails the test if the line
// made a file.
func (d *Desk) Paste(t testing.TB, shell []string, line string) (executed [][]string) {
	t.Helper()
	Must(t, os.RemoveAll(d.log))
	command := exec.CommandContext(Context(t), shell[0], shell[1:]...) //nolint:gosec // a shell is the point
	if shell[len(shell)-1] == "-s" {
		command.Stdin = strings.NewReader("pwos\n" + line + "\n") // a history for what refers to it
	} else {
		command.Args = append(command.Args, line)
	}
	command.Dir, command.Env = d.dir, []string{"PATH=" + d.bin, "HOME=" + d.dir, "HISTFILE=", "LC_ALL=C.UTF-8", "XDG_CONFIG_HOME=" + d.bin, "XDG_DATA_HOME=" + d.bin}
	out, _ := command.CombinedOutput() // a shell may well refuse the line
	for _, made := range Value(os.ReadDir(d.dir))(t) {
		t.Errorf("%v: %s made the file %s: %s", shell, line, made.Name(), out)
		Must(t, os.RemoveAll(filepath.Join(d.dir, made.Name())))
	}
	log, err := os.ReadFile(d.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, one := range strings.Split(strings.TrimSuffix(string(log), "\x1d"), "\x1d") {
		if words := strings.Split(strings.TrimSuffix(one, "\x1e"), "\x1e"); one != "" && !(shell[len(shell)-1] == "-s" && len(words) == 1) {
			executed = append(executed, words)
		}
	}
	return executed
}
