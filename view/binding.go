package view

import (
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Binding says which contents of files an approval of a call is bound to, and which it is not; "" for a call that runs nothing.
func Binding(s *schema.ApprovalState) string {
	row, ok := schema.Lookup(s.Type)
	if !ok {
		return ""
	}
	in, err := row.Input().Decode(s.Data)
	if err != nil { // data that was redacted
		return ""
	}
	switch in := in.(type) {
	case *schema.ToolUseInput:
		return commandBinding(in)
	case *schema.SpawnInput:
		if len(in.Command) > 0 {
			return "binds no content: the files that the program is, and runs, may change before it starts"
		}
	case *schema.CallInput:
		if strings.Contains(in.Syscall, "/") {
			return "binds no content: the file of the tool may change before it runs"
		}
	}
	return ""
}

func commandBinding(in *schema.ToolUseInput) string {
	if len(in.Binds) == 0 { // it runs no command
		return ""
	}
	decoded, err := schema.TypeOf[schema.CommandFiles]().Decode(in.Binds)
	if err != nil { // of a newer kernel
		return ""
	}
	bound := decoded.(*schema.CommandFiles)
	if len(bound.Files) == 0 {
		return "binds no content: " + bound.Unbound
	}
	names := make([]string, len(bound.Files))
	for i, f := range bound.Files {
		names[i] = f.Path
	}
	text := "binds " + strings.Join(names, ", ") + " as it is now"
	if bound.Unbound != "" {
		text += ", and nothing else: " + bound.Unbound
	}
	return text
}
