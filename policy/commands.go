package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// commandMembers are the members of a tool's input that can have a command.
var commandMembers = [...]string{"command", "cmd", "script"}

// commandsOf returns the programs, with their arguments, that the command of a tool names in its simple commands: those of which each word
// is literal. There may be more that it executes.
func commandsOf(in *schema.ToolUseInput) (list [][]string) {
	for _, name := range commandMembers {
		value := memberOf(in.Input, name)
		if value == nil || slices.Contains(in.Cut, name) || slices.Contains(in.Cut, "*") {
			continue
		}
		if value[0] == '"' {
			return commandsIn(string(jsontype.Unquote(value)))
		}
		decoded, err := schema.TypeOf[[]string]().Decode(value)
		if err != nil {
			continue
		}
		words := *decoded.(*[]string)
		if len(words) == 3 && (words[1] == "-c" || words[1] == "-lc") { // a shell
			list = commandsIn(words[2])
		}
		if len(words) > 0 {
			list = append(list, words)
		}
		return list
	}
	return nil
}

// commandsIn returns the simple commands in a text for a shell of which each word is literal, without those that a shell does itself.
func commandsIn(text string) (list [][]string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok {
			if words := literals(call.Args); words != nil {
				list = append(list, words)
			}
		}
		return true
	})
	return list
}

// literals returns the words of a command that a shell does not do itself; nil if it does, or not each word is literal.
func literals(args []*syntax.Word) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		word, ok := literal(arg)
		if !ok {
			return nil
		}
		words[i] = word
	}
	for len(words) > 1 && (words[0] == "exec" || words[0] == "command") && !strings.HasPrefix(words[1], "-") {
		words = words[1:]
	}
	if len(words) == 0 || words[0] == "" || slices.Contains(builtins[:], words[0]) {
		return nil
	}
	return words
}

// builtins are the commands that shells do themselves.
var builtins = [...]string{
	".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt", "continue", "dirs",
	"disown", "echo", "enable", "eval", "exec", "exit", "false", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "logout",
	"mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "return", "set", "shift", "shopt", "source", "suspend", "test", "times",
	"trap", "true", "type", "ulimit", "umask", "unalias", "unset", "wait",
}

// literal returns what a shell makes of a word; false if that depends on more than the word.
func literal(word *syntax.Word) (string, bool) {
	var b strings.Builder
	for i, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text, ok := unescaped(part.Value, i == 0)
			if !ok {
				return "", false
			}
			b.WriteString(text)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar {
				return "", false
			}
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(quoted(lit.Value))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescaped returns a text outside of quotes without its escapes; false if a shell expands it.
func unescaped(text string, first bool) (string, bool) {
	if first && strings.HasPrefix(text, "~") {
		return "", false
	}
	var b strings.Builder
	brace := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '*' || c == '?' || c == '[':
			return "", false
		case c == '{':
			brace = true
		case brace && (c == ',' || strings.HasPrefix(text[i:], "..")):
			return "", false
		case c == '\\' && i+1 < len(text):
			if i++; text[i] == '\n' { // the line goes on
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String(), true
}

// quoted returns a text in double quotes without its escapes.
func quoted(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("\\\"$`\n", text[i+1]) >= 0 {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
