package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

// unknownCommand says that there is no command of that name below cmd, and which one was probably meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	like := schema.Nearest(name, func(yield func(string) bool) {
		for _, below := range cmd.Commands() {
			if below.IsAvailableCommand() && !yield(below.Name()) {
				return
			}
		}
	})
	if like != "" {
		return fmt.Errorf("unknown command %q; did you mean %q?", name, like)
	}
	return fmt.Errorf("unknown command %q", name)
}
