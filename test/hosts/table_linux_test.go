package hosts_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/screen"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// abilities are the rows of the table in docs/doors.md, in its order.
var abilities = []string{
	"starts in a terminal, is told, ends", "runs once with `-p` or the like", "edits a file", "runs a command", "runs the project's tests", "commits",
	"`npm install` from a registry", "a tool of the kernel", "a question is asked, approved, and it goes on",
	"it is refused, and its model repeats why", "its budget is reached", "is paused, resumed, and goes on", "one step is undone", "nothing else is left in the project",
	"the login is never inside",
}

// table returns the table of docs/doors.md.
func table() string {
	var b strings.Builder
	b.WriteString("| |")
	for _, h := range presetHosts() {
		b.WriteString(" " + h.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(presetHosts())) + "\n")
	for _, ability := range abilities {
		b.WriteString("| " + ability + " |")
		b.WriteString(strings.Repeat(" yes |", len(presetHosts())))
		b.WriteString("\n")
	}
	return b.String()
}

// edits returns the steps that change the file src/add.sh.
func (h *presetHost) edits(p *place) []step {
	file := p.Path("project/src/add.sh")
	const from, to = "# nothing", "# something"
	switch h.name {
	case "claude":
		return []step{
			{tool: "Read", input: object{"file_path": file}},
			{tool: "Edit", input: object{"file_path": file, "old_string": from, "new_string": to}},
		}
	case "codex":
		return []step{h.command("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/add.sh\n@@\n-" + from + "\n+" + to + "\n*** End Patch\nEOF")}
	case "copilot":
		return []step{{tool: "edit", input: object{"path": file, "old_str": from, "new_str": to}}}
	case "gemini":
		return []step{
			{tool: "read_file", input: object{"file_path": file}},
			{tool: "replace", input: object{"file_path": file, "old_string": from, "new_string": to, "instruction": "say it"}},
		}
	case "opencode":
		return []step{
			{tool: "read", input: object{"filePath": file}},
			{tool: "edit", input: object{"filePath": file, "oldString": from, "newString": to}},
		}
	case "pi":
		return []step{{tool: "edit", input: object{"path": file, "edits": []any{object{"oldText": from, "newText": to}}}}}
	case "qwen":
		return []step{
			{tool: "read_file", input: object{"file_path": file}},
			{tool: "edit", input: object{"file_path": file, "old_string": from, "new_string": to}},
		}
	}
	return nil
}

// once returns the arguments with which it does what it is told, and ends.
func (h *presetHost) once() []string {
	if h.name == "claude" {
		return append(h.args, "Edit") // another tool that is allowed
	}
	return h.args
}

// row is what a host is tried with, and the cells of the table that it has so far: "" or what is wrong.
type row struct {
	*presetHost
	t     *testing.T
	cells map[string]string
}

// cell records what is wrong with an ability of the host; "" if nothing is.
func (r *row) cell(number int, wrong string) {
	if wrong = strings.TrimSpace(wrong); len(wrong) > 1500 {
		wrong = wrong[:700] + " … " + wrong[len(wrong)-700:]
	}
	r.cells[abilities[number-1]] = wrong
}

// TestTable: each host does all that the table in docs/doors.md says.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, h := range presetHosts() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			r := &row{presetHost: &h, t: t, cells: map[string]string{}}
			r.work()
			r.exhaust()
			r.sit()
			for i, ability := range abilities {
				wrong, tried := r.cells[ability]
				switch {
				case !tried:
					t.Errorf("%d %s: not tried", i+1, ability)
				case wrong != "":
					t.Errorf("%d %s: %s", i+1, ability, wrong)
				}
			}
		})
	}
}

// TestTablePage: docs/doors.md has the table that TestTable tries.
func TestTablePage(t *testing.T) {
	t.Parallel()
	if page := testkit.ReadFile(t, "../../docs/doors.md"); !strings.Contains(page, table()) {
		t.Errorf("docs/doors.md does not have this table:\n%s", table())
	}
}

// tableProject is a repository with tests, a package and two remotes. What is in ignored is not of interest.
const tableProject = `git init -q -b main && mkdir src ignored && echo '# nothing' >src/add.sh && printf 'ignored/\nnode_modules/\n' >.gitignore
echo 'add() { echo $(($1 + $2)); }' >>src/add.sh
echo '{"name":"shop","version":"1.0.0"}' >package.json
echo '. ./src/add.sh; test "$(add 2 3)" = 5 && echo all tests pass' >test.sh
for one in approved refused; do git init -q --bare ignored/$one.git && git remote add $one ./ignored/$one.git; done
git config user.name n && git config user.email e && git add -A && git commit -qm one`

// place returns a place with the project, and a kernel that has the key of the model.
func (r *row) place(m *model) *place {
	p := newPlace(r.t)
	p.identity()
	p.configure(fmt.Sprintf("[crypto]\nidentity = %q\n[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"* /…\"]\n",
		p.Path("home/.ssh/id_ed25519"), r.model, m.url+r.url, r.header, "vault/"+r.model))
	p.run("sh", "-c", `pwos mem set vault/`+r.model+` "$(printf %s `+canary+` | pwos seal)"`)
	p.run("sh", "-c", tableProject)
	p.env = append(p.env, r.env...)
	return p
}

// look puts into ignored/seen what an agent sees of the environment and of the files, and the key if it sees that. It is a file, since some
// hosts ask their user about a path outside in a command.
const look = `(env; cat /proc/*/environ | tr '\0' '\n'; grep -rsa 'sk-canary[^x]6b1f' ~ . /tmp) >ignored/seen 2>&1`

// work has a host work headless under the profile of a coder.
func (r *row) work() {
	m := newModel(r.t)
	p := r.place(m)
	port := registry(r.t, "tiny", map[string]string{"package.json": `{"name":"tiny","version":"1.0.0","main":"index.js"}`, "index.js": `console.log("tiny " + "works")`})
	testkit.WriteFile(r.t, p.Path("project/ignored/look"), look)
	m.steps = r.edits(p)
	edit := len(m.steps) - 1
	for _, line := range []string{
		"echo made >made", "sh test.sh", "git add -A && git commit -qm two && git rev-list --count HEAD",
		"npm install --no-audit --no-fund --registry http://localhost:" + port + "/ tiny && node -e 'require(\"tiny\")'",
		"sh ignored/look; touch ignored/begun; until test -e ignored/go; do sleep 0.1; done; echo gone on",
	} {
		m.steps = append(m.steps, r.command(line))
	}
	m.steps = append(m.steps, step{tool: "Memory_Set", input: object{"key": "a", "value": 1}}, r.command("git push -q approved main && echo pushed"), r.command("git push -q refused main"))
	m.repeats = true
	paused := make(chan string, 1)
	go func() { paused <- p.pauseOnce() }()
	leave := p.person()
	out, err := p.try("pwos", append([]string{"run", "--profile", "coder", "--localhost", port, "--", r.name}, r.once()...)...)
	leave()
	result := func(number int) string {
		if number < len(m.results) {
			return m.results[number]
		}
		return fmt.Sprintf("no result: %d of %d\n%s", len(m.results), len(m.steps), out)
	}
	has := func(number int, want string) string {
		if got := result(number); !strings.Contains(got, want) {
			return got
		}
		return ""
	}
	r.cell(2, "")
	if err != nil || len(m.results) != len(m.steps) {
		r.cell(2, fmt.Sprintf("%v after %d results: %s", err, len(m.results), out))
	}
	is := func(number int, script string) {
		r.cells[abilities[number-1]] = ""
		if got, err := p.try("sh", "-c", script); err != nil {
			r.cell(number, fmt.Sprintf("%s: %v %s\n%q", script, err, got, m.results))
		}
	}
	is(3, "grep -q something src/add.sh && git log -1 --format= --name-only | grep -q src/add.sh")
	is(4, "test \"$(cat made)\" = made")
	r.cell(5, has(edit+2, "all tests pass"))
	is(6, `test "$(git rev-list --count HEAD)" = 2`)
	r.cell(7, has(edit+4, "tiny works"))
	r.cell(12, <-paused+has(edit+5, "gone on"))
	r.cell(8, has(edit+6, "success"))
	is(9, "test -n \"$(git -C ignored/approved.git branch --list main)\" && test \"$(pwos approvals --all | grep -c '\"state\":\"used\"')\" = 1")
	is(10, "test -z \"$(git -C ignored/refused.git branch --list main)\"")
	if r.cells[abilities[9]] == "" && !strings.Contains(out, "not on a Friday") {
		r.cell(10, result(edit+8)+"\n"+out)
	}
	is(14, `test "$(git status --porcelain --ignored | sort | tr '\n' ' ')" = ' M package.json !! ignored/ !! node_modules/ ?? package-lock.json ' || ! git status --porcelain --ignored`)
	seen, err := os.ReadFile(p.Path("project/ignored/seen"))
	wrong := ""
	if err != nil || strings.Contains(string(seen), canary) || !strings.Contains(string(seen), "PWOS_UPSTREAM_") {
		wrong = fmt.Sprintf("%v: %s", err, seen)
	}
	for _, key := range m.keys {
		if !strings.Contains(key, canary) {
			wrong += "asked with the key " + key
		}
	}
	r.cell(15, wrong)
	is(13, `pwos undo `+r.name+`:$(pwos why made | sed -n 's/.*"step":\([0-9]*\).*/\1/p' | head -1) && test ! -e made && test -e node_modules/tiny/index.js && grep -q something src/add.sh || { pwos why made; false; }`)
}

// pauseOnce pauses the agent once it has begun, and resumes it. It returns what is wrong.
func (p *place) pauseOnce() string {
	out, err := p.try("sh", "-c", `until test -e ignored/begun; do sleep 0.1; done; pwos pause 1; pwos ps
for one in /proc/[0-9]*; do if test "$(readlink $one/cwd)" = "$PWD" && tr '\0' '\n' <$one/environ 2>/dev/null | grep -q ^PWOS_AGENT; then sed -n 's/^State:\s*\(.\).*/state=\1/p' $one/status; fi; done
touch ignored/go; pwos resume 1`)
	if err != nil || !strings.Contains(out, "state=T") || strings.Contains(out, "state=S") || strings.Contains(out, "state=R") {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return ""
}

// person approves what is asked of pushes, except to the remote "refused". The function that is returned has it leave.
func (p *place) person() (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	person := p.command(ctx, "pwos", "approvals", "-f")
	out, err := person.StdoutPipe()
	testkit.Must(p.t, errors.Join(err, person.Start()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s, err := schema.TypeOf[schema.ApprovalState]().Decode(lines.Bytes())
			if err != nil {
				p.t.Error(err)
				return
			}
			q := s.(*schema.ApprovalState)
			answer := []string{"approve", q.ID}
			if strings.Contains(string(q.Data), "push -q refused") || strings.Contains(lines.Text(), "push -q refused") {
				answer = []string{"refuse", q.ID, "--why", "not on a Friday"}
			}
			if q.State == schema.ApprovalWaiting {
				if out, err := p.try("pwos", answer...); err != nil {
					p.t.Errorf("%q: %v\n%s", answer, err, out)
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
		_ = person.Wait() // it was ended
	}
}

// exhaust has a host work until its budget is reached.
func (r *row) exhaust() {
	m := newModel(r.t, r.command("touch first"), r.command("true"), r.command("true"), r.command("touch last"))
	m.tokens = 150_000
	p := r.place(m)
	out, err := p.try("pwos", append([]string{"run", "--profile", "coder", "--budget", "tokens=200000", "--", r.name}, r.args...)...)
	wrong := ""
	if !p.exists("first") || p.exists("last") || !strings.Contains(out, "budget's tokens") && !strings.Contains(out, "402 Payment Required") {
		wrong = fmt.Sprintf("%v: first %t, last %t: %s", err, p.exists("first"), p.exists("last"), out)
	}
	r.cell(11, wrong)
}

// sit has a person tell a host in a terminal what to do, and end it.
func (r *row) sit() {
	m := newModel(r.t, r.command("echo made >made"))
	p := r.place(m)
	p.welcome(r.name)
	terminal := map[string]struct {
		args  []string
		ready string // it shows this when it reads keys
	}{
		"claude": {nil, "❯"}, "codex": {[]string{"-m", "x"}, "›"}, "copilot": {[]string{"--allow-all-tools"}, "Confirm"}, "gemini": {[]string{"-y"}, "Type your message"},
		"opencode": {[]string{"-m", "anthropic/claude-sonnet-4-5"}, "opentui"}, "pi": {[]string{"--provider", "anthropic", "--model", "claude-sonnet-4-5"}, "π - project"}, "qwen": {[]string{"-y"}, "shortcuts|Type your"},
	}[r.name]
	s := screen.Sit(r.t, p.command(r.t.Context(), "pwos", append([]string{r.name}, terminal.args...)...), patience/3)
	s.Expect(`profile show coder\)`)
	s.Expect(terminal.ready)
	if r.name == "copilot" { // it asks whether it may use the folder
		s.Enter("\r")
	}
	s.Insist("zz", "zz")
	done := "done"
	if r.name == "copilot" { // it moves the cursor within the word
		done = `(?s)do.{0,400}ne`
	}
	s.Insist("\r", done)
	testkit.Eventually(r.t, "it does what it is told", func() bool { return p.exists("made") })
	s.Insist("\x03\x03", `pid 1 .* (exited 0|was killed by SIGINT)`)
	r.cell(1, "")
}
