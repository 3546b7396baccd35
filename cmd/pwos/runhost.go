package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/door/presetfile"
)

// hostLine returns the command line "run -- HOST ARGS" for one whose verb is the name of an agent host: all that follows is the host's, also
// what would be a flag of pwos.
func hostLine(args []string) []string {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return args
		case strings.HasPrefix(arg, "-"):
			if !strings.Contains(arg, "=") && !lone(arg) {
				i++ // skip the flag's value
			}
		case preset.Named(arg) != nil:
			return slices.Concat(args[:i], []string{"run", "--"}, args[i:])
		default:
			return args
		}
	}
	return args
}

// hostTopics returns the help about agent hosts, a topic for each name.
func hostTopics() (topics []verb) {
	for _, h := range preset.Hosts() {
		topics = append(topics, verb{h.Name, func(*app) *cobra.Command {
			return &cobra.Command{Use: h.Name, Short: "run " + h.Name + " confined, here: all arguments are its own", Long: hostHelp(h)}
		}})
	}
	return topics
}

func hostHelp(h *preset.Host) string {
	return h.Name + ` [ARGS...] runs ` + h.Name + ` confined in this directory, with the profile coder. It is the same as
run -- ` + h.Name + ` [ARGS...]: all ARGS are its own, and flags of pwos go before the "--".

Its tools ask the kernel before they are used, and what they change can be undone ("pwos steps",
"pwos undo"). It may write here and in a home of its own, and reaches its model, package
registries and git hosts. The same is there for ` + strings.Join(preset.Names(), ", ") + `.
See docs/doors.md, and "pwos profile show" for what it may do.

It is the package ` + h.Package + ` of npm, and was tried with version ` + h.Tested + `.`
}

// readPreset reads a declaration of an agent host.
func readPreset(path string) (*preset.Host, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return presetfile.Parse(path, text)
}
