package view

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// Step is what a step did in one directory.
type Step struct {
	schema.StepState

	UndoneBy int64 // the step that has taken it back; 0: none
}

// StepName returns how a step is named on a command line, such as claude:12.
func StepName(agent string, step int64) string { return agent + ":" + strconv.FormatInt(step, 10) }

// Undone returns steps, oldest first, with those marked that a later one of them has taken back.
func Undone(states []schema.StepState) []Step {
	type key struct {
		agent, tree string
		step        int64
	}
	list, by := make([]Step, len(states)), make(map[key]*Step)
	for i := range states {
		list[i].StepState = states[i]
		by[key{states[i].Agent, states[i].Tree, states[i].Step}] = &list[i]
	}
	for i := range slices.Backward(list) { // latest first, since an undo that is undone takes nothing back
		s := &list[i]
		if s.UndoneBy != 0 {
			continue
		}
		for _, step := range s.Undoes {
			if of := by[key{s.Agent, s.Tree, step}]; of != nil && of.UndoneBy == 0 {
				of.UndoneBy = s.Step
			}
		}
	}
	return list
}

// StepHeader names the cells of a step.
func StepHeader() []string { return []string{"step", "time", "tool", "files", "what"} }

// StepRow are the cells of a step, the last without highlighting.
type StepRow [5]string

// Row returns the cells of a step. now is the time at which they are read; several says whether there are steps of several directories,
// so that paths begin with the directory's name.
func (s *Step) Row(now time.Time, several bool) StepRow {
	return StepRow{Escaped(StepName(s.Agent, s.Step)), clock(s.Ended, now), shortened(Escaped(toolName(s.Tool)), 16), FilesText(&s.Files), s.what(several)}
}

// toolName returns the name of a tool without its host.
func toolName(tool string) string {
	if _, name, ok := strings.Cut(tool, "/"); ok {
		return name
	}
	return tool
}

// clock formats a time: of another day than now with its date.
func clock(ms int64, now time.Time) string {
	at := time.UnixMilli(ms).In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format("Jan _2 15:04")
}

// FilesText formats how many files were made, changed and removed: "+1 ~2 -3".
func FilesText(f *schema.StepFiles) string {
	var parts []string
	for _, part := range []struct {
		sign  string
		count int64
	}{{"+", f.Made}, {"~", f.Changed}, {"-", f.Removed}} {
		if part.count > 0 {
			parts = append(parts, part.sign+strconv.FormatInt(part.count, 10))
		}
	}
	if parts == nil {
		return "·"
	}
	return strings.Join(parts, " ")
}

// marks returns what is special about a step.
func (s *Step) marks() (marks []string) {
	if s.UndoneBy != 0 {
		marks = append(marks, "undone")
	}
	switch result := Deref(s.Result); {
	case result == "failed":
		marks = append(marks, "failed")
	case result == "unknown":
		marks = append(marks, "cut short")
	}
	if len(s.Undoes) > 0 {
		marks = append(marks, "of "+stepsText(s.Undoes))
	}
	if s.Shared {
		marks = append(marks, "shared")
	}
	if n := s.Files.Marked.Count; n > 0 {
		marks = append(marks, "your tools run or obey "+MarkedText(&s.Files.Marked))
	}
	if s.Files.Missed > 0 {
		marks = append(marks, strconv.FormatInt(s.Files.Missed, 10)+" not kept")
	}
	return marks
}

// MarkedText names what tools outside run or obey.
func MarkedText(marked *schema.StepItems) string {
	const most = 3
	names := make([]string, 0, most+1)
	for _, path := range marked.Items[:min(len(marked.Items), most)] {
		names = append(names, Escaped(path))
	}
	if more := int(marked.Count) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// stepsText formats numbers of steps, in ascending order: "3-5, 8".
func stepsText(steps []int64) string {
	steps = slices.Sorted(slices.Values(steps))
	var parts []string
	for i := 0; i < len(steps); {
		end := i
		for end+1 < len(steps) && steps[end+1] <= steps[end]+1 {
			end++
		}
		part := strconv.FormatInt(steps[i], 10)
		if steps[end] != steps[i] {
			part += "-" + strconv.FormatInt(steps[end], 10)
		}
		parts, i = append(parts, part), end+1
	}
	return strings.Join(parts, ", ")
}

// what returns the marks of a step and its first paths.
func (s *Step) what(several bool) string {
	text := strings.Join(s.marks(), ", ")
	files, git := apart(s.Files.Items)
	if len(files) == 0 && git > 0 {
		files = []schema.StepFile{{Path: ".git"}}
	}
	var paths []string
	for i := range files {
		file := files[i].Path
		if several {
			file = path.Base(s.Tree) + "/" + file
		}
		paths = append(paths, Escaped(file))
	}
	if paths == nil && several {
		paths = []string{Escaped(s.Tree)}
	}
	if more := s.Files.Count() - int64(len(files)); more > 0 && len(files) > 0 {
		paths = append(paths, fmt.Sprintf("%d more", more))
	}
	if n := s.Programs.Count; n > 0 && s.Files.Count() == 0 {
		paths = []string{"programs: " + strconv.FormatInt(n, 10)}
	}
	if text != "" && paths != nil {
		text += ": "
	}
	return text + strings.Join(paths, ", ")
}

// Cells returns the cells with the last one cut to room characters, if that is not 0, and highlighted.
func (s *Step) Cells(row StepRow, room int, style Paint) []string {
	cells := row[:]
	what := row[4]
	if room > 0 && utf8.RuneCountInString(what) > room {
		what = string([]rune(what)[:max(room-1, 0)]) + "…"
	}
	switch {
	case s.UndoneBy != 0:
		what = style(Faint, what)
	case Deref(s.Result) == "failed":
		if rest, ok := strings.CutPrefix(what, "failed"); ok {
			what = style(Bad, "failed") + rest
		}
	}
	return append(slices.Clone(cells[:4]), what)
}

// StepTable returns a table of steps with a line for each, of at most width characters where that is not 0.
func StepTable(steps []Step, now time.Time, width int, style Paint) *Table {
	t := new(Table)
	t.Header(StepHeader()...)
	several := slices.ContainsFunc(steps, func(s Step) bool { return s.Tree != steps[0].Tree })
	rows, leads := make([]StepRow, len(steps)), [][]string{StepHeader()[:4]}
	for i := range steps {
		rows[i] = steps[i].Row(now, several)
		leads = append(leads, rows[i][:4])
	}
	room := width
	for _, w := range widthsOf(leads) {
		room -= w + len(Gap)
	}
	if width == 0 {
		room = 0
	}
	for i := range steps {
		t.Row(steps[i].Cells(rows[i], max(room, min(width, leastRoom)), style)...)
	}
	return t
}

// WholeStep returns a table of all that is known of a step, of which there is a record for each directory.
//
// prompt is the text of the prompt that led to it, nil if it is not known.
func WholeStep(records []Step, prompt *string, style Paint) *Table {
	t := new(Table)
	for i := range records {
		s := &records[i]
		if i == 0 {
			s.about(t, style)
			s.promptRow(t, prompt)
		}
		t.Row("directory", Escaped(s.Tree))
		if s.Files.Count()+s.Files.Missed == 0 {
			t.Row("files", "none")
		}
		fileRows(t, &s.Files, len(s.Files.Items), map[string]string{"missed": "not kept"})
		if s.Files.Marked.Count > 0 {
			t.Row("your tools", "run or obey "+MarkedText(&s.Files.Marked))
		}
		itemRows(t, "programs", &s.Programs)
		itemRows(t, "connections", &s.Connections)
		if s.Shared {
			with := "others that were active in the directory: what is whose is not known"
			if len(s.With) > 0 {
				with = Escaped(strings.Join(s.With, ", ")) + ": what is whose is not known"
			}
			t.Row("shared with", with)
		}
		if len(s.Undoes) > 0 {
			t.Row("takes back", Escaped(s.Agent)+":"+stepsText(s.Undoes))
		}
		if s.UndoneBy != 0 {
			t.Row("undone by", Escaped(StepName(s.Agent, s.UndoneBy)))
		}
	}
	return t
}

func (s *Step) about(t *Table, style Paint) {
	t.Row("step", style(Bold, Escaped(StepName(s.Agent, s.Step)))+fmt.Sprintf(" of pid %d", s.PID))
	tool := Escaped(s.Tool)
	if s.Tool != s.Kind && s.Kind != schema.StepCall {
		tool += ", " + Escaped(s.Kind)
	}
	switch Deref(s.Result) {
	case "failed":
		tool += ", " + style(Bad, "failed")
	case "unknown":
		tool += ", " + style(Bad, "cut short: the kernel ended before it did")
	}
	t.Row("tool", tool)
	t.Row("time", Moment(s.Began)+", for "+milliseconds(s.Ended-s.Began))
	if s.Cause != 0 {
		t.Row("cause", fmt.Sprintf(`entry %d: "pwos why %d"`, s.Cause, s.Cause))
	}
}

// promptRow shows the prompt that led to a step.
func (s *Step) promptRow(t *Table, prompt *string) {
	switch {
	case prompt != nil:
		t.Row("prompt", shortened(Escaped(*prompt), longestPrompt))
	case s.Prompt != nil:
		t.Row("prompt", fmt.Sprintf("not kept: entry %d has its digest", s.Prompt.Entry))
	}
}

// longestPrompt bounds a prompt in a table, in characters.
const longestPrompt = 500

// StepOfFile returns a table of the step that last changed a file.
func StepOfFile(path string, s *Step, prompt *string, style Paint) *Table {
	t := new(Table)
	t.Row("file", Escaped(path))
	s.about(t, style)
	s.promptRow(t, prompt)
	if s.Shared {
		t.Row("shared", "others were active in the directory: what is whose is not known")
	}
	t.Row("shown by", quote.Line("pwos", "diff", StepName(s.Agent, s.Step), path))
	return t
}

// apart returns files without those of repositories, and the number of these; and without a directory with which the same happened as with
// something in it, which tells that too.
func apart(items []schema.StepFile) (files []schema.StepFile, git int64) {
	holds := make(map[schema.StepFile]bool)
	for _, item := range items {
		for at := path.Dir(item.Path); at != "." && at != "/"; at = path.Dir(at) {
			holds[schema.StepFile{Path: at, What: item.What}] = true
		}
	}
	for _, item := range items {
		switch {
		case strings.Contains("/"+item.Path+"/", "/.git/"):
			git++
		case !holds[item]:
			files = append(files, item)
		}
	}
	return files, git
}

// fileRows adds a row for each file, at most that many, and one for what is in a .git. words are other words for what happened to one.
func fileRows(t *Table, of *schema.StepFiles, most int, words map[string]string) {
	files, git := apart(of.Items)
	more := of.Count() + of.Missed - int64(len(of.Items)) + int64(max(0, len(files)-most))
	files = files[:min(len(files), most)]
	for i := range files {
		what, other := words[files[i].What]
		if !other {
			what = files[i].What
		}
		t.Row("  "+Escaped(what), Escaped(files[i].Path))
	}
	if git > 0 {
		t.Row("  .git", strconv.FormatInt(git, 10)+" of its files")
	}
	if more > 0 {
		t.Row("", moreText(more))
	}
}

func moreText(more int64) string { return fmt.Sprintf("and %d more", more) }

func itemRows(t *Table, name string, of *schema.StepItems) {
	if of.Count == 0 {
		return
	}
	count := strconv.FormatInt(of.Count, 10)
	if of.Refused > 0 {
		count += fmt.Sprintf(", %d of them refused", of.Refused)
	}
	t.Row(name, count)
	for _, item := range of.Items {
		t.Row("", Escaped(item))
	}
	if more := of.Count - int64(len(of.Items)); more > 0 && len(of.Items) > 0 {
		t.Row("", moreText(more))
	}
}

// stepCommand returns the command of a verb about a step, in quotes.
func stepCommand(verb, agent string, step int64) string {
	return quote.Command("pwos", verb, StepName(agent, step))
}
