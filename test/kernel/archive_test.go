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
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// allEntries includes all entries of any journal here.
const allEntries = `"before_seq":9007199254740991`

// TestArchiveRestart runs random commands and occasionally archives all entries. The kernel gives the same answers before
// and after a restart, with snapshots or without, since the anchor has the same state.
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

// TestArchiveIsSigned checks that an archive has the signature of its end, also if the audit log is writing it at that moment.
func TestArchiveIsSigned(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	archive := filepath.Join(t.TempDir(), "archive")
	for range testkit.Rounds(30, 100, 1000) {
		c.call("Syscall.Echo", `{"message":"m"}`, nil)
		var moved schema.AuditArchiveOutput
		c.call("Audit.Archive", fmt.Sprintf(`{"directory":%q,%s}`, archive, allEntries), &moved)
		report, err := journal.Verify(t.Context(), nil, archive, journal.VerifyOptions{})
		if err != nil || !report.OK() || report.Vouched != uint64(moved.Last) {
			t.Fatalf("of the entries up to %d %d are signed for: %+v, %v", moved.Last, report.Vouched, report, err)
		}
	}
}

// counted returns the kernel's counts of commands.
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

// TestArchiveLookBack queries archived entries: each answer says that they are archived, to the operator with the place,
// and contains everything that is available.
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
		{"Message.Replay", `{"until_seq":2}`}, {"Message.Undo", `{"seq":2}`},
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

	// Without the directory archived entries are not found. An agent does not see the directory.
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

// TestArchiveShow queries who did something and why, in two archives and the journal: the grant, the spawn and the causes
// are found while their archive is available. Otherwise the answer says what is missing, to the operator with the place,
// and shows the rest.
func TestArchiveShow(t *testing.T) {
	t.Parallel()
	for _, indexed := range []bool{true, false} {
		t.Run(fmt.Sprint("indexed ", indexed), func(t *testing.T) {
			t.Parallel()
			d := start(t)
			c := d.dial(t)
			places := []string{filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")}
			ends := []int64{0, 0}
			pid := c.spawn(0, `{"allowed_syscalls":["Memory.*"]}`)
			set := func(id, cause string) int64 {
				answer := c.askWith("Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"k","value":%q}`, pid, id), fmt.Sprintf(`,"correlation":"flow","causation":%q`, cause))
				return answer.Metadata.Kernel.Seq
			}
			archive := func(n int) {
				var moved schema.AuditArchiveOutput
				c.call("Audit.Archive", fmt.Sprintf(`{"directory":%q,%s}`, places[n], allEntries), &moved)
				if ends[n] = moved.Last; moved.Segments == 0 {
					t.Fatal("nothing was moved")
				}
			}
			oldest := c.askWith("Syscall.Echo", `{"message":"because"}`, "")
			archive(0)
			middle := set("m", oldest.Metadata.Causation)
			var shown schema.AuditShowOutput
			c.call("Audit.Show", fmt.Sprintf(`{"seq":%d}`, middle), &shown)
			archive(1)
			newest := set("n", shown.Entry.ID)
			if !indexed {
				d.restartAfter(t, func() { testkit.Must(t, os.RemoveAll(filepath.Join(d.cfg.StateDir, "projections"))) })
				c = d.dial(t)
			}
			// whole returns what is shown of an entry: its cause, the tokens, the spawn, and what is not available.
			whole := func(data string) (cause, birth int64, tokens []int64, away *schema.Archived) {
				var out schema.AuditShowOutput
				c.call("Audit.Show", data, &out)
				if e := out.Call(schema.RelationCause); e != nil {
					cause = e.Entry.Seq
				}
				if e := out.Call(schema.RelationSpawned); e != nil {
					birth = e.Entry.Seq
				}
				for i := range out.Authority {
					tokens = append(tokens, out.Authority[i].Seq)
				}
				return cause, birth, tokens, out.Archived
			}
			cause, birth, tokens, away := whole(`{"key":"k"}`)
			if cause != middle || birth == 0 || len(tokens) != 1 || tokens[0] > ends[0] || away != nil {
				t.Errorf("the key: cause %d, birth %d, tokens %d, away %+v; want %d, and all there", cause, birth, tokens, away, middle)
			}
			cause, _, tokens, away = whole(fmt.Sprintf(`{"seq":%d}`, middle))
			if want := oldest.Metadata.Kernel.Seq; cause != want || len(tokens) != 1 || away != nil {
				t.Errorf("an archived entry: cause %d, tokens %d, away %+v; want %d, and all there", cause, tokens, away, want)
			}

			testkit.Must(t, os.Rename(places[0], places[0]+".away"))
			cause, birth, tokens, away = whole(fmt.Sprintf(`{"seq":%d}`, newest))
			if diff := cmp.Diff(&schema.Archived{First: 1, Last: ends[0], Directory: places[0]}, away); diff != "" || cause != middle || birth != 0 || tokens != nil {
				t.Errorf("without the first archive: cause %d, birth %d, tokens %d, (-want +got):\n%s", cause, birth, tokens, diff)
			}
			if a := c.ask("Audit.Show", `{"seq":2}`); !strings.Contains(string(a.Data), fmt.Sprintf("1 to %d are in %s", ends[0], places[0])) {
				t.Errorf("an entry of the first archive: %s", a.Data)
			}

			testkit.Must(t, os.Rename(places[0]+".away", places[0]))
			segments, err := filepath.Glob(places[1] + "/*.ndjson")
			testkit.Must(t, err)
			testkit.Must(t, os.Truncate(segments[0], 100)) // it exists, but is unusable
			cause, _, tokens, away = whole(fmt.Sprintf(`{"seq":%d}`, newest))
			if diff := cmp.Diff(&schema.Archived{First: 1, Last: ends[1], Directory: places[1]}, away); diff != "" || cause != 0 || tokens != nil {
				t.Errorf("without the second archive: cause %d, tokens %d, (-want +got):\n%s", cause, tokens, diff)
			}
			testkit.Must(t, os.RemoveAll(places[1]))
			if a := c.ask("Audit.Show", `{"seq":2}`); !strings.Contains(string(a.Data), "are in "+places[1]) {
				t.Errorf("an entry of the first archive, without the second: %s", a.Data)
			}
		})
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
	testkit.WriteFile(t, dir+"/segments/00000000000000100007.ndjson", "x\n") // each attempt may start a segment, but not this one
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
