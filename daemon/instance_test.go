package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// A copy of a state directory on another machine does not start; the original continues.
func TestStateOfAnotherMachine(t *testing.T) {
	t.Parallel()
	cfg := settingsIn(testkit.Dir(t))
	once := func(machine string) {
		t.Helper()
		d := daemon.New(cfg, nil, discard())
		d.OnMachine(machine)
		r := runThis(t, cfg, d)
		r.stop()
		testkit.Must(t, testkit.Receive(t, r.ended, "the daemon's end"))
	}
	once("one")
	other := daemon.New(cfg, nil, discard())
	other.OnMachine("another")
	err := other.Open(testkit.Context(t))
	if !errors.Is(err, fault.StateCopied) || !strings.Contains(err.Error(), "state.copied") || !strings.Contains(err.Error(), "on another machine") {
		t.Errorf("on another machine: got %v, want fault.StateCopied", err)
	}
	testkit.Must(t, other.Close())
	once("one")
	once("") // the machine is unknown
	once("one")
	var kept []string
	for _, in := range boots(t, cfg.StateDir) {
		if !strings.Contains(in, `"epoch":1`) {
			t.Errorf("an entry of a start is %s", in)
		}
		kept = append(kept, in)
	}
	if len(kept) != 4 {
		t.Errorf("%d starts are in the journal, want 4", len(kept))
	}
}

// A state directory of a kernel without an instance opens, and has an instance afterwards.
func TestStateWithoutInstance(t *testing.T) {
	t.Parallel()
	cfg := settingsIn(testkit.Dir(t))
	testkit.Must(t, unixsock.EnsurePrivateDir(cfg.StateDir))
	l, _, err := journal.Open(journal.Options{Dir: filepath.Join(cfg.StateDir, "journal")})
	testkit.Must(t, err)
	l.Append(&journal.Entry{
		Origin:  "https://pwos.local/",
		Request: []byte(`{"kind":"command","type":"Memory.Set","data":{"key":"a\u202eb","value":1},"metadata":{"id":"m","timestamp":1}}`),
		Outcome: []byte(`{"kind":"reply","data":{"success":true}}`),
	})
	testkit.Must(t, l.Close())
	r := run(t, cfg)
	p := dial(t, r.KernelSocket)
	p.want("query", "Memory.Get", `{"key":"a\u202eb"}`, "1")
	r.stop()
	testkit.Must(t, testkit.Receive(t, r.ended, "the daemon's end"))
	if found := boots(t, cfg.StateDir); len(found) != 1 || !strings.Contains(found[0], `"epoch":1`) {
		t.Errorf("starts: %q, want one of epoch 1", found)
	}
}

// boots returns the entries of starts in a journal.
func boots(t *testing.T, stateDir string) (found []string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(stateDir, "journal", "*.ndjson"))
	testkit.Must(t, err)
	for _, path := range segments {
		text, err := os.ReadFile(path)
		testkit.Must(t, err)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"type":"Kernel.Booted"`) {
				found = append(found, line)
			}
		}
	}
	return found
}
