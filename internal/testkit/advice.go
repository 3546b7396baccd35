package testkit

import "strings"

// Commands returns the commands of pwos that a text prints to be pasted: what stands in double quotes, and what stands without
// to the end of the line.
func Commands(text string) (commands []string) {
	for {
		before, rest, found := strings.Cut(text, "pwos ")
		if !found {
			return commands
		}
		end := "\n"
		if strings.HasSuffix(before, `"`) {
			end = `"`
		}
		command, after, _ := strings.Cut(rest, end)
		commands, text = append(commands, "pwos "+command), after
	}
}
