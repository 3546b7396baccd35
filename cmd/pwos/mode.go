package main

import (
	"slices"
	"strings"
)

// cutMode takes --mode out of args, wherever it stands before a `--`. It is looked for before anything else is parsed, since
// what remains is the daemon's to understand.
func cutMode(args []string) (mode string, rest []string) {
	for i, arg := range args {
		value, joined := strings.CutPrefix(arg, "--mode=")
		switch {
		case arg == "--":
			return "", args
		case joined:
			return value, slices.Concat(args[:i], args[i+1:])
		case arg == "--mode" && i+1 < len(args):
			return args[i+1], slices.Concat(args[:i], args[i+2:])
		}
	}
	return "", args
}
