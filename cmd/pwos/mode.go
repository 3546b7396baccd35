package main

import (
	"slices"
	"strings"
)

// cutMode takes --mode out of args, where it stands before the first operand: what follows a verb is the verb's, or a program's
// that it runs. It is looked for before anything else is parsed, since what remains is the daemon's to understand.
func cutMode(args []string) (mode string, rest []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		value, joined := strings.CutPrefix(arg, "--mode=")
		switch {
		case arg == "--" || !strings.HasPrefix(arg, "-"):
			return "", args
		case joined:
			return value, slices.Concat(args[:i], args[i+1:])
		case arg == "--mode" && i+1 < len(args):
			return args[i+1], slices.Concat(args[:i], args[i+2:])
		case !strings.Contains(arg, "=") && !lone(arg):
			i++ // its value
		}
	}
	return "", args
}

// lone reports whether a flag that stands before a verb, or one of the daemon's, takes no value.
func lone(flag string) bool {
	switch flag {
	case "--json", "--no-spawn", "--help", "-h", "--version":
		return true
	}
	return false
}
