package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

// elsewhere are the verbs that work with a kernel on another machine. The others start programs here, or read files of
// this machine's kernel, which are not those of the other one.
var elsewhere = []string{
	"approvals", "approve", "refuse", "audit log", "audit show", "audit tail", "auth status", "auth trust", "budget", "call", "cap", "cluster status",
	"describe", "graph", "help", "kill", "mem", "pause", "ps", "recv", "replay", "resume", "search", "send", "shutdown", "spawn", "status", "story",
	"syscall", "top", "undo", "why",
}

// reaches refuses a verb that does not work with the kernel that --kernel names.
func (a *app) reaches(cmd *cobra.Command, _ []string) error {
	verb := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "pwos"), " ")
	ok := verb == "" || slices.ContainsFunc(elsewhere, func(known string) bool { return verb == known || strings.HasPrefix(verb, known+" ") })
	if a.Kernel == "" || ok {
		return nil
	}
	return cli.Usage(cmd, fmt.Errorf("%s works on the kernel's own machine: run it there, without --kernel", cmd.CommandPath()))
}
