package process_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// host has pid spawn an agent with a program, and returns its PID.
func (s *shell) host(pid int64, more string) int64 {
	s.t.Helper()
	got, err := s.run(pid, "Syscall.Spawn", strings.TrimSuffix(s.spawning(`{"allowed_syscalls":["*"]}`), "}")+`,"command":["/bin/x"]`+more+`}`)
	if err != nil {
		s.t.Fatal(err)
	}
	var child int64
	if _, err := fmt.Sscanf(got, `{"child_pid":%d`, &child); err != nil {
		s.t.Fatalf("%s: %v", got, err)
	}
	return child
}

// note makes one of the kernel's own commands.
func (s *shell) note(typ, data string) {
	s.t.Helper()
	if _, err := s.run(kernel.Operator, typ, data); err != nil {
		s.t.Fatal(err)
	}
}

// The descriptor follows the program: RUNNING from its start, then READY or BLOCKED, at last TERMINATED. A replay and
// a snapshot give the same.
func TestDescriptorFollowsTheProgram(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pid := s.host(kernel.Operator, `,"restart":"always"`)
	expect := func(when, state string, osPID, restarts int64) *schema.Descriptor {
		t.Helper()
		s.check()
		d := s.get(pid)
		if d.State != state || (d.OSPID != nil) != (osPID != 0) || osPID != 0 && *d.OSPID != osPID || *d.Restarts != restarts {
			t.Errorf("%s: %s, os_pid %v, %d restarts; want %s, %d, %d", when, d.State, d.OSPID, *d.Restarts, state, osPID, restarts)
		}
		return d
	}
	expect("spawned", "READY", 0, 0)
	s.note("Process.NoteStart", fmt.Sprintf(`{"pid":%d,"os_pid":77,"sandbox":"off","again":false}`, pid))
	if d := expect("started", "RUNNING", 77, 0); *d.Sandbox != "off" || d.Exit != nil {
		t.Errorf("started: sandbox %s, exit %+v", *d.Sandbox, d.Exit)
	}
	s.tick = 5
	s.note("Process.NoteEnd", fmt.Sprintf(
		`{"pid":%d,"code":3,"reason":"exited","fault":"QUARANTINE","restart":true,"blocked_ticks":30,"faults":3,"quick":2}`, pid))
	d := expect("in quarantine", "BLOCKED", 0, 0)
	if *d.BlockedUntilTick != 35 || *d.Exit.Code != 3 || *d.Exit.Fault != "QUARANTINE" || d.Exit.Tick != 5 {
		t.Errorf("blocked until %d, exit %+v", *d.BlockedUntilTick, d.Exit)
	}
	if h := s.domain.Hosted(); len(h) != 1 || h[0].Faults != 3 || h[0].Quick != 2 || h[0].Blocked != 35 || h[0].Unsettled() || h[0].Ended() {
		t.Errorf("recovery sees %+v", h)
	}
	s.note("Process.NoteStart", fmt.Sprintf(`{"pid":%d,"os_pid":78,"sandbox":"off","again":true}`, pid))
	if d := expect("restarted", "RUNNING", 78, 1); d.BlockedUntilTick != nil {
		t.Error("restarted, and still blocked")
	}
	s.note("Process.NoteEnd", fmt.Sprintf(`{"pid":%d,"signal":9,"reason":"signalled","restart":false,"blocked_ticks":0,"faults":4,"quick":3}`, pid))
	if d := expect("gone", "TERMINATED", 0, 1); *d.Exit.Signal != 9 || d.ExitTick == nil {
		t.Errorf("after the end of the program: %+v", d)
	}
	if !slices.ContainsFunc(s.steps, func(step schema.Request) bool { return step.Row.Type == "Process.Exit" }) {
		t.Errorf("the end of the program took these steps: %v", s.steps)
	}
	if h := s.domain.Hosted(); len(h) != 0 {
		t.Errorf("recovery sees %+v", h)
	}
}

// A process that ends while its program runs keeps its OS PID until that has ended, so that a recovery knows of it; a
// start that is noted too late is refused.
func TestProcessEndsBeforeItsProgram(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pid := s.host(kernel.Operator, "")
	if h := s.domain.Hosted(); len(h) != 1 || !h[0].Unsettled() {
		t.Errorf("before its start recovery sees %+v", h)
	}
	s.note("Process.NoteStart", fmt.Sprintf(`{"pid":%d,"os_pid":77,"sandbox":"off","again":false}`, pid))
	s.note("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid))
	s.check()
	if d := s.get(pid); d.State != "TERMINATED" || d.OSPID == nil {
		t.Errorf("terminated: %+v", d)
	}
	if h := s.domain.Hosted(); len(h) != 1 || !h[0].Ended() {
		t.Errorf("recovery sees %+v", h)
	}
	s.note("Process.NoteEnd", fmt.Sprintf(`{"pid":%d,"signal":15,"reason":"ordered","restart":false,"blocked_ticks":0,"faults":0,"quick":0}`, pid))
	s.check()
	if d := s.get(pid); d.OSPID != nil || d.Exit.Reason != "ordered" || len(s.domain.Hosted()) != 0 {
		t.Errorf("after the end of the program: %+v", d)
	}
	if _, err := s.run(kernel.Operator, "Process.NoteStart", fmt.Sprintf(`{"pid":%d,"os_pid":78,"sandbox":"off","again":true}`, pid)); err == nil || err.Kind != fault.Conflict {
		t.Errorf("a start after the end: %v", err)
	}
}

// If a process ends before its program is noted as started, a recovery handles it until that program's end is noted,
// since followers wait for one.
func TestProcessEndsBeforeItsProgramStarts(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.terminate(s.spawn(kernel.Operator)) // there is no program, and no end to note
	pid := s.host(kernel.Operator, `,"restart":"always"`)
	s.terminate(pid)
	s.check()
	for _, d := range []*process.Domain{s.domain, restore(t, s.domain)} {
		if h := d.Hosted(); len(h) != 1 || h[0].PID != pid || !h[0].Ended() {
			t.Errorf("recovery sees %+v", h)
		}
	}
	s.note("Process.NoteEnd", fmt.Sprintf(`{"pid":%d,"reason":"unknown","restart":false,"blocked_ticks":0,"faults":0,"quick":0}`, pid))
	s.check()
	if d := s.get(pid); d.Exit == nil || d.Exit.Reason != "unknown" || len(s.domain.Hosted()) != 0 {
		t.Errorf("its end is noted: %+v, recovery sees %+v", d, s.domain.Hosted())
	}
}

// Which effects a call begins, and which it does not.
func TestEffects(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	decide := func(typ, data string) *kernel.Work {
		t.Helper()
		result, err := s.domain.Decide(s.request(kernel.Operator, typ, data))
		testkit.Must(t, err)
		return result.Effect
	}
	if e := decide("Syscall.Spawn", `{"child_agent_id":"a"}`); e != nil {
		t.Errorf("without a program: %+v", e)
	}
	e := decide("Syscall.Spawn", `{"child_agent_id":"a","command":["x","y"],"restart":"always"}`)
	if e == nil || e.Start == nil || e.Start.PID != 1 || e.Start.AgentID != "a" || e.Start.Origin != home || len(e.Start.Spec.Command) != 2 {
		t.Errorf("with a program: %+v", e)
	}
	parent := s.spawn(kernel.Operator)
	if e := decide("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, parent)); e != nil {
		t.Errorf("ending one without a program: %+v", e)
	}
	hosted := s.host(kernel.Operator, "")
	child := s.host(hosted, "")
	if e := decide("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, hosted)); e == nil || !slices.Equal(e.Stop, []int64{child, hosted}) {
		t.Errorf("ending one with a program, whose child has one: %+v", e)
	}
	s.note("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, child))
	if e := decide("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, child)); e == nil || !slices.Equal(e.Stop, []int64{child}) {
		t.Errorf("ending it again, while its program may still run: %+v", e)
	}
	s.terminate(s.host(kernel.Operator, ""))
	family := []int64{s.host(kernel.Operator, "")}
	for range 3 {
		family = append(family, s.host(family[len(family)/2], ""))
	}
	s.terminate(family[0])
	s.terminate(s.host(kernel.Operator, "")) // neither this one nor the one before is theirs
	again := decide("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, family[0]))
	if again == nil || !slices.Equal(slices.Sorted(slices.Values(again.Stop)), family) {
		t.Errorf("ending a family again: %+v, want %v", again, family)
	}
}

// A repetition starts nothing, and waits as the first call does.
func TestRepeat(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pid := s.host(kernel.Operator, "")
	child := s.host(pid, "")
	s.terminate(pid)
	for _, c := range []struct {
		typ, data, answer string
		want              *kernel.Work
	}{
		{"Syscall.Terminate", `{"target_pid":1}`, `{"target_pid":1}`, &kernel.Work{Stop: []int64{pid, child}}},
		{"Syscall.Terminate", `{"target_pid":9}`, `{"target_pid":9}`, nil},
		{"Syscall.Spawn", `{"child_agent_id":"a","command":["x"]}`, `{"child_pid":5,"child_agent_id":"a"}`, &kernel.Work{Await: 5}},
		{"Syscall.Spawn", `{"child_agent_id":"a"}`, `{"child_pid":5,"child_agent_id":"a"}`, nil},
		{"Kernel.Ingest", `{"uri":"x"}`, `{}`, nil},
	} {
		got := s.domain.Repeat(s.request(kernel.Operator, c.typ, c.data), []byte(c.answer))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.typ, c.data, diff)
		}
	}
}

// Refused programs: invalid ones, and those with fewer limits than their spawner.
func TestProgramsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, own, asked string
		class            fault.Kind
		says             string
	}{
		{"no program", "", `"command":[]`, fault.InvalidInput, "command"},
		{"empty name", "", `"command":[""]`, fault.InvalidInput, "command"},
		{"NUL", "", `"command":["a\u0000b"]`, fault.InvalidInput, "NUL"},
		{"settings without a program", "", `"restart":"always"`, fault.InvalidInput, "restart"},
		{"limits without a program", "", `"limits":{"open_files":9}`, fault.InvalidInput, "limits"},
		{"bad variable", "", `"command":["a"],"env":{"A=B":"c"}`, fault.InvalidInput, "env"},
		{"relative directory", "", `"command":["a"],"cwd":"here"`, fault.InvalidInput, "cwd"},
		{"a secret without a vault", "", `"command":["a"],"secrets":{"A":"notes/1"}`, fault.InvalidInput, "secrets"},
		{"a secret beside a value", "", `"command":["a"],"env":{"A":"1"},"secrets":{"A":"vault/1"}`, fault.InvalidInput, "secrets"},
		{"secrets of no program", "", `"secrets":{"A":"vault/1"}`, fault.InvalidInput, "secrets"},
		{"a login without a name", "", `"command":["a"],"logins":{"":"x"}`, fault.InvalidInput, "logins"},
		{"a login without a credential", "", `"command":["a"],"logins":{"a":""}`, fault.InvalidInput, "logins"},
		{"logins without a network for them", "", `"command":["a"],"logins":{"a":"x"},"sandbox":{"net":"none"}`, fault.InvalidInput, "logins"},
		{"logins of no program", "", `"logins":{"a":"x"}`, fault.InvalidInput, "logins"},
		{"an agent's choice of logins", "", `"command":["a"],"logins":{"a":"x"}`, fault.Forbidden, "logins"},
		{"an agent's choice of secrets", "", `"command":["a"],"secrets":{"A":"vault/1"}`, fault.Forbidden, "secrets"},
		{"an upstream that is no address", "", `"command":["a"],"upstream":{"url":"ftp://a/","from":"vault/1"}`, fault.InvalidInput, "upstream"},
		{"an upstream that is read in two ways", "", `"command":["a"],"upstream":{"url":"https://a/b/../c","from":"vault/1"}`, fault.InvalidInput, "upstream"},
		{"an upstream without a vault", "", `"command":["a"],"upstream":{"url":"https://a/","from":"notes/1"}`, fault.InvalidInput, "upstream"},
		{"an upstream without a network", "", `"command":["a"],"sandbox":"strict","upstream":{"url":"https://a/","from":"vault/1"}`, fault.InvalidInput, "upstream"},
		{"an upstream of no program", "", `"upstream":{"url":"https://a/","from":"vault/1"}`, fault.InvalidInput, "upstream"},
		{"an agent's choice of upstream", "", `"command":["a"],"upstream":{"url":"https://a/","from":"vault/1"}`, fault.Forbidden, "upstream"},
		{"an agent's choice of directory", "", `"command":["a"],"cwd":"/"`, fault.Forbidden, "cwd"},
		{"looser sandbox", "", `"command":["a"],"sandbox":"off"`, fault.Forbidden, "sandbox"},
		{"looser than strict", `,"sandbox":"strict"`, `"command":["a"]`, fault.Forbidden, "sandbox"},
		{"looser than strict, as an object", `,"sandbox":{"level":"strict"}`, `"command":["a"],"sandbox":{}`, fault.Forbidden, "sandbox"},
		{"a wider network", `,"sandbox":{"net":"none"}`, `"command":["a"]`, fault.Forbidden, "sandbox.net kernel"},
		{"more to read", `,"sandbox":{"read":["/a"]}`, `"command":["a"],"sandbox":{"read":["/a/b","/ab"]}`, fault.Forbidden, "sandbox.read /ab"},
		{"more to write", `,"sandbox":{"read":["/a"]}`, `"command":["a"],"sandbox":{"write":["/a"]}`, fault.Forbidden, "sandbox.write /a"},
		{"to write what it may only read", `,"sandbox":{"write":["/a"],"read":["/a/b"]}`, `"command":["a"],"sandbox":{"write":["/a/b/c"]}`, fault.Forbidden, "sandbox.write /a/b/c"},
		{"to write above what it may only read", `,"sandbox":{"write":["/a"],"read":["/a/b"]}`, `"command":["a"],"sandbox":{"write":["/a"]}`, fault.Forbidden, "/a/b, which it may only read itself"},
		{"its directory, and to write what it may only read there", `,"cwd":"/p","sandbox":{"read":["/p/kept"]}`, `"command":["a"],"cwd":"/p"`, fault.Forbidden, "/p/kept, which it may only read itself"},
		{"to show what is hidden by its name", `,"cwd":"/p","sandbox":{"read":["/p"]}`, `"command":["a"],"sandbox":{"read":["/p/.env"]}`, fault.Forbidden, "sandbox.write /p/.env"},
		{"to write what programs outside run", `,"sandbox":{"write":["/p"]}`, `"command":["a"],"sandbox":{"write":["/p/.vscode/tasks.json"]}`, fault.Forbidden, "sandbox.write /p/.vscode/tasks.json"},
		{"to write what has a private copy", `,"sandbox":{"write":["/p"],"copies":{"/p/.git/hooks":""}}`, `"command":["a"],"sandbox":{"write":["/p/.git/hooks"]}`, fault.Forbidden, "sandbox.write /p/.git/hooks"},
		{"to show what is hidden by its name, cut", `,"cwd":"/p","sandbox":{"read":["/p"]}`, `"command":["a"],"cut":true,"sandbox":{"read":["/p/.env"]}`, fault.Forbidden, "/p/.env"},
		{"another directory", `,"cwd":"/project"`, `"command":["a"],"cwd":"/project/below"`, fault.Forbidden, "cwd"},
		{"a snapshot", `,"cwd":"/project"`, `"command":["a"],"cwd":"/project","snapshot":"s"`, fault.Forbidden, "snapshot"},
		{"less hidden", `,"sandbox":{"hide":["/a/b"]}`, `"command":["a"],"sandbox":{"hide":["/a/c"]}`, fault.Forbidden, "sandbox.hide /a/b"},
		{"what is held", "", `"command":["a"],"sandbox":{"hold":[]}`, fault.Forbidden, "sandbox.hold"},
		{"a relative directory that is held", "", `"command":["a"],"sandbox":{"hold":["a"]}`, fault.InvalidInput, "sandbox.hold"},
		{"off, and held", "", `"command":["a"],"sandbox":{"level":"off","hold":["/a"]}`, fault.InvalidInput, "sandbox"},
		{"copies", "", `"command":["a"],"sandbox":{"copies":{}}`, fault.Forbidden, "sandbox.copies"},
		{"review", "", `"command":["a"],"sandbox":{"review":"a"}`, fault.Forbidden, "sandbox.review"},
		{"a relative copy", "", `"command":["a"],"sandbox":{"copies":{"/a":"b"}}`, fault.InvalidInput, "sandbox.copies"},
		{"gaps", "", `"command":["a"],"sandbox":{"allow_gaps":true}`, fault.Forbidden, "allow_gaps"},
		{"a relative path", "", `"command":["a"],"sandbox":{"read":["a"]}`, fault.InvalidInput, "sandbox.read"},
		{"a path that climbs", "", `"command":["a"],"sandbox":{"write":["/a/../b"]}`, fault.InvalidInput, "sandbox.write"},
		{"off, and hidden", "", `"command":["a"],"sandbox":{"level":"off","hide":["/a"]}`, fault.InvalidInput, "sandbox"},
		{"no limit where the spawner has one", `,"limits":{"open_files":64}`, `"command":["a"]`, fault.Forbidden, "open_files"},
		{"limit above the spawner's", `,"limits":{"memory_bytes":64}`, `"command":["a"],"limits":{"memory_bytes":65}`, fault.Forbidden, "memory_bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			spawner := kernel.Operator
			if test.class == fault.Forbidden {
				spawner = s.host(kernel.Operator, test.own)
			}
			_, err := s.run(spawner, "Syscall.Spawn", `{"child_agent_id":"b",`+test.asked+`}`)
			if err == nil || err.Kind != test.class || !strings.Contains(err.Text(), test.says) {
				t.Errorf("got %v, want class %v and %q", err, test.class, test.says)
			}
		})
	}
}

// TestCut: with cut, an agent spawns with what it has itself, also after a replay, and never with more.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, own, asked, want string }{
		{"the spawner's directory", `,"cwd":"/p","sandbox":{"read":["/p/kept","/x"]}`, `"cwd":"/p"`, `{"cwd":"/p","sandbox":{"level":"default","read":["/p/kept"],"hold":["/p"],"net":"kernel"}}`},
		{"paths", `,"sandbox":{"read":["/a"],"write":["/w"],"hide":["/a/h"]}`, `"sandbox":{"read":["/a/b","/c"],"write":["/w/1","/a"],"hide":["/z"]}`, `{"sandbox":{"read":["/a/b"],"write":["/w/1"],"hide":["/z","/a/h"],"level":"default","net":"kernel"}}`},
		{"level and network", `,"sandbox":{"level":"strict","net":"none"}`, `"sandbox":{"level":"off"}`, `{"sandbox":{"level":"strict","net":"none"}}`},
		{"limits", `,"limits":{"open_files":8,"processes":4}`, `"limits":{"open_files":9,"cpu_seconds":1}`, `{"sandbox":{"level":"default","net":"kernel"},"limits":{"cpu_seconds":1,"open_files":8,"processes":4}}`},
		{"the deepest path counts", `,"sandbox":{"read":["/home"],"write":["/home/out"]}`, `"sandbox":{"write":["/home/out/x","/home/y"]}`, `{"sandbox":{"level":"default","write":["/home/out/x"],"net":"kernel"}}`},
		{"not confined", `,"sandbox":"off"`, `"sandbox":{"level":"strict","read":["/a"]}`, `{"sandbox":{"level":"strict","read":["/a"]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			child := s.host(s.host(kernel.Operator, test.own), `,"cut":true,`+test.asked)
			s.check()
			for _, hosted := range s.domain.Hosted() {
				if hosted.PID != child {
					continue
				}
				spec := hosted.Spec
				spec.Command = nil
				got, err := schema.Marshal(&spec)
				testkit.Must(t, err)
				var want schema.Program
				testkit.Must(t, json.Unmarshal([]byte(test.want), &want))
				text, err := schema.Marshal(&want)
				testkit.Must(t, err)
				if !bytes.Equal(got, text) {
					t.Errorf("it runs with %s, want %s", got, text)
				}
			}
		})
	}
}

// What is held from a spawner is held from what it spawns, also after a replay; a spawner that sees it passes that on.
func TestHeldFromChildren(t *testing.T) {
	t.Parallel()
	for own, want := range map[string][]string{
		`,"cwd":"/project"`: {"/project"}, `,"cwd":"/project","sandbox":{"hold":[]}`: {}, `,"sandbox":{"hold":["/a","/b"]}`: {"/a", "/b"},
		"": nil, `,"cwd":"/project","sandbox":"off"`: nil,
	} {
		s := newShell(t)
		child := s.host(s.host(kernel.Operator, own), `,"sandbox":{"net":"none"}`)
		grandchild := s.host(child, `,"sandbox":{"net":"none"}`)
		s.check()
		for _, hosted := range s.domain.Hosted() {
			if got := hosted.Spec.Held(); (hosted.PID == child || hosted.PID == grandchild) && (!slices.Equal(got, want) || *hosted.Spec.Sandbox.Net != "none") {
				t.Errorf("spawner %s: held from its child are %v, want %v", own, got, want)
			}
		}
	}
}

// TestReviewOfChildren: what an agent that works on a copy spawns works on the same copy, also after a replay.
func TestReviewOfChildren(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{`,"cwd":"/project","sandbox":{"review":"a"}`: "a", `,"cwd":"/project","sandbox":{"review":"a","copies":{"/b":"/c"}}`: "a", `,"cwd":"/project"`: ""} {
		s := newShell(t)
		child := s.host(s.host(kernel.Operator, own), "")
		grandchild := s.host(child, `,"sandbox":{"net":"none"}`)
		s.check()
		for _, hosted := range s.domain.Hosted() {
			got := ""
			if in := hosted.Spec.Sandbox; in != nil && in.Review != nil {
				got = *in.Review
			}
			if (hosted.PID == child || hosted.PID == grandchild) && got != want {
				t.Errorf("spawner %s: its child works on the copy of %q, want %q", own, got, want)
			}
		}
	}
	if _, err := newShell(t).run(0, "Syscall.Spawn", `{"child_agent_id":"b","command":["a"],"sandbox":{"level":"off","review":"a"}}`); err == nil || !strings.Contains(err.Text(), "has no review") {
		t.Errorf("without a sandbox: %v", err)
	}
}

// TestLoginsOfChildren: what an agent spawns has its logins, where it has a network for them.
func TestLoginsOfChildren(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	child := s.host(s.host(kernel.Operator, `,"logins":{"a":"x"}`), "")
	grandchild := s.host(child, "")
	alone := s.host(child, `,"sandbox":{"net":"none"}`)
	s.check()
	for _, hosted := range s.domain.Hosted() {
		if got := hosted.Spec.Logins["a"]; (hosted.PID == child || hosted.PID == grandchild) && got != "x" || hosted.PID == alone && got != "" {
			t.Errorf("pid %d has the login %q", hosted.PID, got)
		}
	}
}

// TestUserOfPrograms: the program of an agent's child runs as the agent's, and an agent names no other user.
func TestUserOfPrograms(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	plain := s.host(kernel.Operator, "")
	pid := s.host(kernel.Operator, `,"user":"bob"`)
	for _, more := range []string{"", `,"user":"bob"`} {
		child := s.host(s.host(pid, more), "")
		if u := s.get(child).User; u == nil || *u != "bob" {
			t.Errorf("%q: the user is %v", more, u)
		}
		for _, h := range s.domain.Hosted() {
			if h.PID == child && (h.Spec.User == nil || *h.Spec.User != "bob") {
				t.Errorf("%q: recovery sees %v", more, h.Spec.User)
			}
		}
	}
	if u := s.get(s.host(plain, "")).User; u != nil {
		t.Errorf("the user is %s", *u)
	}
	s.check()
	for _, test := range []struct {
		pid  int64
		user string
		want fault.ID
	}{
		{pid, "root", fault.CapabilityOperatorOnly},
		{pid, "1000", fault.CapabilityOperatorOnly}, // that may be bob, but this kernel does not know
		{plain, "root", fault.CapabilityOperatorOnly},
		{plain, "bob", fault.CapabilityOperatorOnly},
		{kernel.Operator, "a:b", fault.WireInvalidInput},
		{kernel.Operator, "../x", fault.WireInvalidInput},
		{kernel.Operator, `a\u0000`, fault.WireInvalidInput},
	} {
		data := strings.TrimSuffix(s.spawning(`{"allowed_syscalls":["*"]}`), "}") + `,"command":["/bin/x"],"user":"` + test.user + `"}`
		if _, err := s.run(test.pid, "Syscall.Spawn", data); err == nil || err.ID != test.want {
			t.Errorf("%q as %d: %v, want %s", test.user, test.pid, err, test.want)
		}
	}
}
