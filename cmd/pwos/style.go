package main

import (
	"os"
)

// look is how a piece of text stands out at a terminal: an SGR parameter.
type look string

const (
	bold  look = "1"
	faint look = "2"
	bad   look = "31"
	good  look = "32"
)

// style makes text look so, unless stdout is no terminal or colours are not wanted (https://no-color.org).
func (a *app) style(l look, text string) string {
	if !a.stdoutTerminal() || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + string(l) + "m" + text + "\x1b[0m"
}
