package process_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestRestoreFiles: files of a process can be restored after its end, unless its programs, or another program in,
// above or below the directory, are running.
func TestRestoreFiles(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	pid := s.host(kernel.Operator, `,"cwd":"/w/a","snapshot":"s1"`)
	if d := s.get(pid); d.Snapshot == nil || *d.Snapshot != "s1" {
		t.Errorf("snapshot of the descriptor: got %v", d.Snapshot)
	}
	restore := func(what string, pid int64, dir string, want fault.ID) {
		t.Helper()
		s.check()
		_, err := s.run(kernel.Operator, "Process.RestoreFiles", fmt.Sprintf(`{"pid":%d,"snapshot":"s1","dir":%q,"made":1,"changed":0,"removed":0}`, pid, dir))
		if want == "" && err != nil || want != "" && !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
	}
	end := func(pid int64) {
		t.Helper()
		s.note("Process.NoteEnd", fmt.Sprintf(`{"pid":%d,"code":0,"reason":"exited","restart":false,"blocked_ticks":0,"faults":0,"quick":0}`, pid))
	}
	s.note("Process.NoteStart", fmt.Sprintf(`{"pid":%d,"os_pid":77,"sandbox":"off","again":false}`, pid))
	restore("running", pid, "/w/a", fault.ProcessAlive)
	s.note("Process.Exit", fmt.Sprintf(`{"pids":[%d],"reason":"ended"}`, pid))
	restore("its program is still ending", pid, "/w/a", fault.ProcessAlive)
	end(pid)
	restore("ended", pid, "/w/a", "")
	restore("never existed", 99, "/w/a", fault.ProcessNotFound)
	restore("no path", pid, "w", fault.WireInvalidInput)
	for dir, want := range map[string]fault.ID{"/w/a": fault.ProcessAlive, "/w": fault.ProcessAlive, "/w/a/b": fault.ProcessAlive, "/w/ab": "", "/": fault.ProcessAlive} {
		other := s.host(kernel.Operator, fmt.Sprintf(`,"cwd":%q`, dir))
		restore("another one in "+dir, pid, "/w/a", want)
		s.note("Process.Exit", fmt.Sprintf(`{"pids":[%d],"reason":"ended"}`, other))
	}
	restore("alone again", pid, "/w/a", "")
}

// TestSnapshotOfASpawn: a copy belongs to a directory, and only the operator may name one.
func TestSnapshotOfASpawn(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, more := range []string{`"command":["/bin/x"],"snapshot":"s1"`, `"snapshot":"s1"`} {
		if _, err := s.run(kernel.Operator, "Syscall.Spawn", `{"child_agent_id":"x",`+more+`}`); !errors.Is(err, fault.WireInvalidInput) {
			t.Errorf("%s: got %v", more, err)
		}
	}
	agent := s.host(kernel.Operator, "")
	if _, err := s.run(agent, "Syscall.Spawn", `{"child_agent_id":"x","command":["/bin/x"],"cwd":"/w","snapshot":"s1"}`); !errors.Is(err, fault.CapabilityOperatorOnly) {
		t.Errorf("an agent: got %v", err)
	}
}
