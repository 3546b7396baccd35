package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// Question is a request for approval as people read it: a sentence, what it is about in full, and where it came from. No character of it
// is interpreted by a terminal, or hidden by one.
type Question struct {
	Agent string      // name of the agent that made the call
	Does  string      // what it wants to do: a verb, and often an object
	What  []string    // what exactly, in full
	Facts [][2]string // where it came from, and what is to be known of it
	More  []string    // details
	Raw   []string    // as the kernel has it
}

// Sentence returns the question in one line, which may leave something out.
func (q *Question) Sentence() string {
	text := q.Agent + " wants to " + q.Does
	if len(q.What) > 0 {
		text += " " + q.What[0]
	}
	if len(q.What) > 1 {
		text += " ..."
	}
	return text
}

// QuestionOf returns a question for people.
func QuestionOf(s *schema.ApprovalState) *Question {
	q := &Question{Agent: harmless(s.Agent)}
	switch row, known := schema.Lookup(s.Type); {
	case s.PID == 0 && s.Type == schema.StepUndo.Row().Type:
		q.Does, q.What = "put back", filesBack(s)
		q.Agent = "pwos"
		q.fact("of", s.Agent)
	case known:
		if in, err := row.Input().Decode(s.Data); err == nil {
			q.about(in, s.Data)
		}
	}
	if q.Does == "" {
		q.Does, q.What = "call "+harmless(s.Type), memberLines(s.Data, nil)
	}
	if s.Exhausted != "" {
		q.fact("cost", "it needs more "+s.Exhausted+" than its budget has left")
	}
	q.fact("rule", s.Rule)
	if binding := Binding(s); binding != "" {
		q.fact("file", binding)
	}
	q.More = append(q.More, fmt.Sprintf("%s, of pid %d, asked at %s", harmless(s.ID), s.PID, time.UnixMilli(s.Asked).Format("15:04:05")))
	if s.Origin != "" {
		q.More = append(q.More, "origin "+harmless(s.Origin))
	}
	q.Raw = []string{harmless(s.ID), "digest " + harmless(s.Digest), "policy " + harmless(s.Policy), harmless(s.Type) + " " + harmless(quote.JSON(string(s.Data)))}
	return q
}

// fact adds a fact.
func (q *Question) fact(name, text string) {
	if text != "" {
		q.Facts = append(q.Facts, [2]string{name, harmless(text)})
	}
}

// about fills in what a call does.
func (q *Question) about(in any, data schema.Value) {
	switch in := in.(type) {
	case *schema.ToolUseInput:
		q.tool(in)
	case *schema.ProgramExecInput:
		q.Does, q.What = "run", TextLines(quote.Line(in.Argv...))
		q.fact("as", in.Path)
		q.fact("in", in.Cwd)
		q.fact("from", in.Step)
		if in.Cut {
			q.fact("cut", "its arguments go on: they are longer than the kernel reads")
		}
	case *schema.SpawnInput:
		if len(in.Command) > 0 {
			q.Does, q.What = "start an agent:", append(TextLines(quote.Line(in.Command...)), memberLines(data, []string{"command"})...)
		}
	}
}

// tool fills in what a tool of a host does: first what it is about, if that is known of such tools, then all else that it was given.
func (q *Question) tool(in *schema.ToolUseInput) {
	members, _ := Members(in.Input)
	command, line := firstText(members, "command", "cmd", "script")
	place, path := firstText(members, "file_path", "notebook_path", "path", "filePath")
	address, url := firstText(members, "url")
	lines, used, replaces := change(members)
	if list, ok := changes(members["edits"]); ok {
		lines, used, replaces = append(lines, list...), append(used, "edits"), true
	}
	tool := harmless(in.Tool)
	switch {
	case command != "":
		q.Does, q.What, used = "run", TextLines(line), append(inert(in.Tool), command)
	case place != "" && len(lines) > 0:
		q.Does, q.What, used = "write", append(TextLines(path), lines...), append(used, place)
		if replaces {
			q.Does = "edit"
		}
	case place != "":
		q.Does, q.What, used = "use "+tool+" on", TextLines(path), []string{place}
	case address != "":
		q.Does, q.What, used = "fetch", TextLines(url), []string{address}
	default:
		q.Does, used = "use "+tool+":", nil
	}
	q.What = append(q.What, memberLines(in.Input, used)...)
	if command != "" {
		for _, name := range inert(in.Tool) {
			if value, ok := members[name]; ok {
				q.More = append(q.More, memberLine(name, value)...)
			}
		}
	}
	q.fact("in", in.Cwd)
	q.fact("tool", in.Tool+" of "+in.Host)
	if len(in.Cut) > 0 {
		q.fact("cut", "this is not all: the host's input is too long, and the kernel got only the beginning of "+strings.Join(in.Cut, ", "))
	}
}

// inert returns the members that change nothing of what a host's own tool runs: words about the command, and the time that it may take.
func inert(tool string) []string {
	switch tool {
	case "Bash", "bash", "run_shell_command":
		return []string{"description", "timeout"}
	}
	return nil
}

// firstText returns the first of some members that is a text; "" if there is none.
func firstText(members map[string]schema.Value, names ...string) (name, text string) {
	for _, name := range names {
		if text, ok := Text(members[name]); ok {
			return name, text
		}
	}
	return "", ""
}

// change returns the lines that go from a file, and that come, and which members have them. It replaces something if lines go.
func change(members map[string]schema.Value) (lines, used []string, replaces bool) {
	old, before := firstText(members, "old_string", "oldString", "old_str", "oldText")
	content, after := firstText(members, "new_string", "newString", "new_str", "newText", "content", "new_source")
	if old != "" {
		lines, used = marked("- ", before), append(used, old)
	}
	if content != "" {
		lines, used = append(lines, marked("+ ", after)...), append(used, content)
	}
	return lines, used, old != ""
}

// changes returns the lines of a list of changes, each with all that it has. ok is false if raw is none.
func changes(raw schema.Value) (lines []string, ok bool) {
	list, _ := Elements(raw)
	for _, element := range list {
		members, ok := Members(element)
		if !ok {
			return nil, false
		}
		change, used, _ := change(members)
		lines = append(append(lines, change...), memberLines(element, used)...)
	}
	return lines, len(list) > 0
}

// marked returns the lines of a text, each with a mark before it.
func marked(mark, text string) []string {
	lines := TextLines(text)
	for i, line := range lines {
		lines[i] = mark + line
	}
	return lines
}

// memberLines returns the members of an object, each with its whole value, without some.
func memberLines(raw schema.Value, without []string) (lines []string) {
	members, ok := Members(raw)
	if !ok {
		return []string{harmless(quote.JSON(string(raw)))}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(without, name) {
			continue
		}
		lines = append(lines, memberLine(name, members[name])...)
	}
	return lines
}

// memberLine returns the lines of a member.
func memberLine(name string, value schema.Value) []string {
	text, ok := Text(value)
	if !ok {
		text = quote.JSON(string(value))
	}
	lines := TextLines(text)
	lines[0] = harmless(name) + ": " + lines[0]
	for i := range lines[1:] {
		lines[i+1] = "  " + lines[i+1]
	}
	return lines
}

// filesBack returns the lines of a question about files that were set aside.
func filesBack(s *schema.ApprovalState) []string {
	members, _ := Members(s.Data)
	paths, _ := As[[]string](members["paths"])
	count, _ := As[int64](members["count"])
	step, _ := As[int64](members["step"])
	tree, _ := Text(members["tree"])
	var lines []string
	for _, path := range paths {
		lines = append(lines, harmless(path))
	}
	if more := count - int64(len(paths)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return append(lines, "in "+harmless(tree)+", set aside by "+harmless(StepName(s.Agent, step)))
}

// TextLines returns the lines of a text that anybody may have chosen; at least one.
func TextLines(text string) []string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if len(lines) > 1 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		lines[i] = harmless(strings.ReplaceAll(line, "\t", "    "))
	}
	return lines
}

// mostMarks is how many marks may combine with a character; more of them could cover other lines.
const mostMarks = 3

// harmless returns text with everything escaped that a terminal may interpret, or may not show.
func harmless(text string) string {
	text = quote.Text(strings.ToValidUTF8(text, "\uFFFD"))
	var b strings.Builder
	marks := 0
	for _, r := range text {
		if unicode.In(r, unicode.Mn, unicode.Me) {
			marks++
		} else {
			marks = 0
		}
		if quote.Hidden(r) || marks > mostMarks {
			b.WriteString(quote.Rune(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
