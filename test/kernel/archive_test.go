package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// allEntries is beyond the last entry of any journal here.
const allEntries = `"before_seq":9007199254740991`

// TestArchiveRestart runs random commands and archives all entries now and then. What the kernel answers before a restart it
// answers after one, with snapshots or without: the anchor has all that they have.
func TestArchiveRestart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			d := start(t, func(c *config.Config) { c.Journal.SnapshotEvery = 10 })
			archive := filepath.Join(t.TempDir(), "archive")
			c := d.dial(t)
			pids := []int64{c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":3}}`)}
			chance := rand.New(rand.NewPCG(seed, 6))
			for n := range 4 {
				for range 40 {
					pids = c.scramble(chance, pids)
				}
				key := fmt.Sprintf(`,"idempotencyKey":"key-%d"`, n)
				made := c.askWith("Syscall.Echo", fmt.Sprintf(`{"payload":%d}`, n), key)
				c.call("Audit.Archive", fmt.Sprintf(`{"directory":%q,%s}`, archive, allEntries), nil)
				for range chance.IntN(20) {
					pids = c.scramble(chance, pids)
				}
				before, counted := c.everything(pids), c.counted()
				d.restartAfter(t, func() {
					if n%2 == 0 {
						testkit.Must(t, os.RemoveAll(filepath.Join(d.cfg.StateDir, "projections")))
					}
				})
				c = d.dial(t)
				if diff := cmp.Diff(before, c.everything(pids)); diff != "" {
					t.Errorf("before and after a restart (-before +after):\n%s", diff)
				}
				if diff := cmp.Diff(counted, c.counted()); diff != "" {
					t.Errorf("metrics before and after a restart (-before +after):\n%s", diff)
				}
				again := c.askWith("Syscall.Echo", fmt.Sprintf(`{"payload":%d}`, n), key)
				if string(again.Data) != string(made.Data) || again.Kind != made.Kind {
					t.Errorf("the repeated call is answered %s, not %s", again.Data, made.Data)
				}
			}
			var out schema.AuditVerifyOutput
			c.call("Audit.Verify", `{}`, &out)
			if !out.OK || out.Archived == nil || out.Archived.Directory != archive {
				t.Errorf("the journal is %+v", out)
			}
		})
	}
}

// counted is what the kernel has counted of commands.
func (c *client) counted() map[string]int64 {
	c.t.Helper()
	var m schema.AuditMetricsOutput
	c.call("Audit.Metrics", `{}`, &m)
	counted := map[string]int64{"denied": m.DeniedCalls}
	for _, name := range []string{"SPAWN", "ALLOC", "SEND_MSG", "COMMIT_DELTA", "Memory.Set", "Memory.Delete", "Capability.Grant", "Clock.Advance", "Audit.Archive"} {
		counted[name] = m.ByCode[name]
	}
	return counted
}

// TestArchiveLookBack asks for what is archived: each answer says so, to the operator with the place, and what can be
// answered all the same is.
func TestArchiveLookBack(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	archive := filepath.Join(t.TempDir(), "archive")
	pid := c.spawn(0, `{"allowed_syscalls":["Audit.*","Message.Replay","Memory.*"]}`)
	mine := fmt.Sprintf(`"pid":%d`, pid)
	c.call("Memory.Set", fmt.Sprintf(`{%s,"key":"k","value":"needle"}`, mine), nil)
	var moved schema.AuditArchiveOutput
	c.call("Audit.Archive", fmt.Sprintf(`{"directory":%q,%s}`, archive, allEntries), &moved)
	where := &schema.Archived{First: 1, Last: moved.Last, Directory: archive}
	c.call("Memory.Set", fmt.Sprintf(`{%s,"key":"later","value":1}`, mine), nil)

	for _, ask := range [][2]string{
		{"Audit.Show", `{"seq":2}`}, {"Audit.Show", `{"key":"k"}`}, {"Message.Replay", `{"until_seq":2}`}, {"Message.Undo", `{"seq":2}`},
	} {
		a := c.ask(ask[0], ask[1])
		if text := string(a.Data); a.Kind != "error" || !strings.Contains(text, archive) {
			t.Errorf("%s %s: %s", ask[0], ask[1], text)
		}
	}
	var log schema.AuditLogOutput
	c.call("Audit.Log", `{"type":"Memory.Set"}`, &log)
	if diff := cmp.Diff(where, log.Archived); diff != "" || len(log.Entries) != 1 {
		t.Errorf("Audit.Log: %d entries, archived (-want +got):\n%s", len(log.Entries), diff)
	}
	log = schema.AuditLogOutput{}
	c.call("Audit.Log", fmt.Sprintf(`{"since_seq":%d}`, moved.Last), &log)
	if log.Archived != nil || len(log.Entries) == 0 {
		t.Errorf("what follows the archive: %+v", log)
	}
	var found schema.EventSearchOutput
	c.call("Event.Search", `{"query":"needle"}`, &found)
	if diff := cmp.Diff(where, found.Archived); diff != "" || len(found.Events) != 1 || !strings.Contains(string(found.Events[0].Data), "needle") {
		t.Errorf("Event.Search: %+v (-want +got):\n%s", found.Events, diff)
	}
	var graph schema.EventGraphOutput
	c.call("Event.Graph", `{"correlationId":"none"}`, &graph)
	if diff := cmp.Diff(where, graph.Archived); diff != "" {
		t.Errorf("Event.Graph (-want +got):\n%s", diff)
	}
	var replayed schema.ReplayOutput
	c.call("Message.Replay", fmt.Sprintf(`{"until_seq":%d,"key":"k"}`, moved.Last), &replayed)
	if string(replayed.Value) != `"needle"` || replayed.Head != moved.Hash {
		t.Errorf("the state as of the anchor: %+v", replayed)
	}

	// Without the directory what is archived is not found. An agent is not told where that was.
	testkit.Must(t, os.RemoveAll(archive))
	found = schema.EventSearchOutput{}
	c.call("Event.Search", `{"query":"needle"}`, &found)
	if found.Archived == nil || len(found.Events) != 0 {
		t.Errorf("Event.Search without the directory: %+v", found)
	}
	agent := d.dial(t)
	agent.call("Process.Attach", `{"agent_id":"other","capabilities":{"allowed_syscalls":["Audit.*","Message.Replay","Memory.*"]}}`, nil)
	for _, ask := range [][2]string{{"Audit.Log", `{}`}, {"Audit.Show", `{"seq":3}`}, {"Audit.Verify", `{}`}, {"Message.Replay", `{"until_seq":2,"key":"k"}`}} {
		if text := string(agent.ask(ask[0], ask[1]).Data); !strings.Contains(text, "archived") || strings.Contains(text, archive) {
			t.Errorf("an agent's %s: %s", ask[0], text)
		}
	}
}

// TestArchivePlaces names directories that cannot be the archive. Nothing is moved.
func TestArchivePlaces(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	dir := t.TempDir()
	testkit.WriteFile(t, dir+"/file", "x")
	testkit.Must(t, os.Mkdir(dir+"/used", 0o700))
	testkit.WriteFile(t, dir+"/used/letter", "x")
	testkit.Must(t, os.Symlink(d.cfg.StateDir, dir+"/link"))
	testkit.Must(t, os.Mkdir(dir+"/segments", 0o700))
	testkit.WriteFile(t, dir+"/segments/00000000000000100007.ndjson", "x\n") // each attempt may begin a segment: of none of those
	c.call("Memory.Set", `{"key":"k","value":1}`, nil)
	for place, want := range map[string]string{
		"a":                           "absolute",
		dir + "/file":                 "not a directory",
		dir + "/none/a":               "to make it in",
		dir + "/used":                 "such as letter",
		dir + "/segments":             "a segment of entry 100007",
		d.cfg.StateDir:                "the kernel's own",
		d.cfg.StateDir + "/journal":   "the kernel's own",
		dir + "/link/journal/archive": "the kernel's own",
		filepath.Dir(d.cfg.StateDir):  "the kernel's own",
		"/proc/pwos-archive":          "cannot be the archive",
	} {
		a := c.ask("Audit.Archive", fmt.Sprintf(`{"directory":%q,%s}`, place, allEntries))
		if a.Kind != "error" || !strings.Contains(string(a.Data), want) {
			t.Errorf("%s: %s", place, a.Data)
		}
	}
	for _, data := range []string{`{"directory":"/a"}`, `{"directory":"/a","before_seq":1,"before_time":1}`, `{"before_seq":1}`, `{"directory":"/a","before_seq":0}`} {
		if a := c.ask("Audit.Archive", data); !strings.Contains(string(a.Data), "Invalid input") {
			t.Errorf("%s: %s", data, a.Data)
		}
	}
	var out schema.AuditArchiveOutput
	c.call("Audit.Archive", fmt.Sprintf(`{"directory":%q,"before_seq":2}`, dir+"/archive"), &out)
	if out.Segments != 0 {
		t.Errorf("moved %+v", out)
	}
	c.call("Audit.Show", `{"seq":2}`, nil)
}
