package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// startJudged starts fetches together with the kernel's own syscalls.
func startJudged(t *testing.T, disk *faultfs.Disk) (*system, *fetches) {
	t.Helper()
	f := newFetches()
	domains := map[schema.Domain]kernel.Domain{schema.Http: f, schema.Kernel: newFake()}
	keys, counted := idempotency.New(), metrics.New()
	r := journal.NewReader(disk, "/journal", journal.ReaderOptions{})
	defer r.Close()
	err := record.Replay(context.Background(), r, map[schema.Domain]kernel.Domain{schema.Http: newFetches()}, nil, func(call *kernel.Call) {
		keys.Recall(call)
		counted.Recall(call)
	})
	if err != nil && len(disk.Image()) > 0 {
		t.Fatalf("replay: %v", err)
	}
	s := startHosting(t, disk, domains, keys, textLog, actors.Hosting{}, counted)
	s.kernel.Recover(nil)
	return s, f
}

// auditLog queries all rows, limit at a time, except for those of its own queries.
func auditLog(t *testing.T, c *client, filter string, limit int) (rows []schema.AuditEntry) {
	t.Helper()
	id := schema.NewStamper().NewID()
	for since := int64(0); ; {
		c.send(query(id, "Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":%d%s}`, since, limit, filter)))
		a := c.next()
		var page schema.AuditLogOutput
		if err := json.Unmarshal(a.Data, &page); err != nil || a.Kind != schema.KindReply {
			t.Fatalf("log: %s %s %v", a, a.Text, err)
		}
		for _, e := range page.Entries {
			if e.ID == id {
				return rows
			}
			rows = append(rows, e)
		}
		if page.Next == 0 {
			return rows
		}
		since = page.Next
	}
}

// calls returns the rows without those of the kernel's own commands and of queries of the log.
func calls(rows []schema.AuditEntry) []schema.AuditEntry {
	return slices.DeleteFunc(rows, func(e schema.AuditEntry) bool {
		row, _ := schema.Lookup(e.Type)
		return row.Internal || row.Domain == schema.Audit
	})
}

// TestOneVerdict shows that a call with an effect is one row, with the verdict that its caller got, for any reader, and
// that it is counted once.
func TestOneVerdict(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		url, status string
		code        int64
		words       string
	}{
		{"a", schema.StatusOK, 0, `"a"`},
		{"refused", schema.StatusDenied, 403, "not begun"},
		{"denied", schema.StatusDenied, 403, "not there"},
		{"quota", schema.StatusDenied, 429, "no more"},
		{"fail", schema.StatusFailed, 502, "no luck"},
		{"panic", schema.StatusFailed, 500, "internal"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				disk := faultfs.NewDisk()
				s, _ := startJudged(t, disk)
				agent, operator := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7), s.connect()
				agent.send(strings.Replace(fetchOf("mine", tt.url), `"metadata":{`, `"metadata":{"correlation":"c","causation":"why",`, 1))
				answered := agent.next()
				check := func(who string, rows []schema.AuditEntry) {
					t.Helper()
					if rows = calls(rows); len(rows) != 1 {
						t.Errorf("%s sees %d rows: %+v", who, len(rows), rows)
						return
					}
					e := rows[0]
					if e.Status != tt.status || e.Success != (tt.status == schema.StatusOK) || e.Code != tt.code ||
						!strings.Contains(string(e.Error)+string(e.Payload), tt.words) {
						t.Errorf("%s sees %+v, want %+v", who, e, tt)
					}
					if e.Type != "Http.Fetch" || e.SyscallCode != "Http.Fetch" || e.PID != 7 || e.ID != "mine" || e.Correlation != "c" || e.Causation != "why" {
						t.Errorf("%s sees %+v, which is not the call", who, e)
					}
					if begun := tt.url != "refused"; (e.Intent > 0 && e.Intent < e.Seq) != begun {
						t.Errorf("%s sees entry %d with the intent %d", who, e.Seq, e.Intent)
					}
				}
				look := func() {
					t.Helper()
					check("the operator", auditLog(t, operator, "", 1))
					check("who asks for the pid", auditLog(t, operator, `,"pid":7`, 50))
					check("who asks for the type", auditLog(t, operator, `,"type":"Http.Fetch"`, 1))
					check("who asks for the correlation", auditLog(t, operator, `,"correlation":"c"`, 50))
					if rows := calls(auditLog(t, operator, `,"pid":0`, 50)); len(rows) != 0 {
						t.Errorf("rows of the operator: %+v, want none", rows)
					}
					m := askMetrics(t, operator)
					denied := int64(0)
					if tt.status == schema.StatusDenied {
						denied = 1
					}
					if m.ByCode["Http.Fetch"] != 1 || m.DeniedCalls != denied || m.DeniedByCode["Http.Fetch"] != denied || m.ByCode["Http.Fetched"] != 0 {
						t.Errorf("counted %+v", m)
					}
				}
				look()
				if tt.url != "refused" && answered.Kind == schema.KindError && answered.Code != fmt.Sprint(tt.code) {
					t.Errorf("answered %s", answered)
				}
				check("the agent", auditLog(t, agent, "", 1))
				if err := s.end(); err != nil {
					t.Error(err)
				}
				s, f := startJudged(t, disk)
				operator, agent = s.connect(), s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
				look()
				check("the agent", auditLog(t, agent, "", 50))
				if f.count() != 0 {
					t.Errorf("the next start began %v", f.runs)
				}
			})
		})
	}
}

// TestLatencyOfAnEffect shows that the latency of a call with an effect is the time from its request to its end.
func TestLatencyOfAnEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, f := startJudged(t, faultfs.NewDisk())
		c := s.connect()
		c.send(fetchOf("1", "hold"))
		synctest.Wait()
		time.Sleep(3 * time.Second)
		close(f.released)
		says(t, c, "1", "")
		m := askMetrics(t, c)
		if rows := calls(auditLog(t, c, "", 50)); len(rows) != 1 || rows[0].LatencyUS < 3_000_000 || m.AvgLatencyUS < 3_000_000 {
			t.Errorf("%+v, %+v", rows, m)
		}
	})
}

// TestRunningAndUnknown shows what is reported of an effect that has not ended: it is running and not counted, and after
// the kernel was killed its outcome is unknown.
func TestRunningAndUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := startJudged(t, faultfs.NewDisk())
		agent, operator := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7), s.connect()
		agent.send(fetchOf("mine", "hold"))
		synctest.Wait()
		status := func(want string, intent int64) {
			t.Helper()
			rows := calls(auditLog(t, operator, `,"pid":7`, 50))
			if len(rows) != 1 || rows[0].Status != want || rows[0].Success || rows[0].Intent != intent || rows[0].ID != "mine" || len(rows[0].Payload) > 0 && string(rows[0].Payload) != "null" {
				t.Errorf("rows %+v, want one that is %s, of the intent %d", rows, want, intent)
			}
		}
		status(schema.StatusRunning, 1)
		if m := askMetrics(t, operator); m.ByCode["Http.Fetch"] != 0 {
			t.Errorf("counted %+v", m)
		}
		before := faultfs.FromImage(s.disk.Image())
		s, _ = startJudged(t, before) // as if the first kernel had died then
		operator = s.connect()
		status(schema.StatusUnknown, 1)
		if m := askMetrics(t, operator); m.ByCode["Http.Fetch"] != 1 || m.DeniedCalls != 0 {
			t.Errorf("counted %+v", m)
		}
	})
}

// TestLostVerdict shows that a call that could not be journaled is not counted, and that an effect whose end was lost is
// unknown, immediately and after the next start.
func TestLostVerdict(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"hold", "late"} { // a call that was done, and one that was refused
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { lostVerdict(t, url) })
		})
	}
}

func lostVerdict(t *testing.T, url string) {
	s, f := startJudged(t, faultfs.NewDisk())
	c := s.connect()
	c.send(fetchOf("mine", url))
	synctest.Wait()
	s.room.full(syscall.ENOSPC)
	close(f.released)
	says(t, c, "mine", "503", "counts as unknown")
	c.send(ping("lost", "1"))
	says(t, c, "lost", "")
	s.room.free()
	c.send(ping("kept", "1"))
	says(t, c, "kept", "")
	for life := range 2 {
		m := askMetrics(t, c)
		var got []string
		for _, e := range calls(auditLog(t, c, "", 50)) {
			got = append(got, e.ID+" "+e.Status)
		}
		// The end that is recorded at the next start follows the earlier entries.
		if want := [][]string{{"mine unknown", "kept ok"}, {"kept ok", "mine unknown"}}[life]; !slices.Equal(got, want) {
			t.Errorf("rows %v, want %v", got, want)
		}
		if m.ByCode["Syscall.Ping"] != 1 || m.ByCode["Http.Fetch"] != int64(life) {
			t.Errorf("life %d: counted %+v", life, m)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
		s, _ = startJudged(t, s.disk)
		c = s.connect()
	}
}

// TestCountsAreRows: for any calls, with clean ends and kills of the kernel in between, each call is a row, each row is
// counted once, and the next kernel has the same counts, from the journal and from a snapshot.
func TestCountsAreRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		sorts := []string{"ping", "a", "b", "refused", "denied", "quota", "fail", "junk", "keyed", "end", "kill", "snapshot"}
		doings := rapid.SliceOfN(rapid.SampledFrom(sorts), 1, 30).Draw(rt, "calls")
		limit := rapid.IntRange(1, 9).Draw(rt, "limit")
		synctest.Test(t, func(t *testing.T) {
			s, _ := startJudged(t, faultfs.NewDisk())
			agent, operator := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7), s.connect()
			made := 0
			begin := func(disk *faultfs.Disk) {
				s, _ = startJudged(t, disk)
				agent, operator = s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7), s.connect()
			}
			for i, doing := range doings {
				id := fmt.Sprint("call-", i)
				switch doing {
				case "end":
					if err := s.end(); err != nil {
						t.Fatal(err)
					}
					begin(s.disk)
					continue
				case "kill": // while one runs
					agent.send(fetchOf(id, "hold"))
					synctest.Wait()
					begin(faultfs.FromImage(s.disk.Image()))
					made++
					continue
				case "snapshot":
					want := askMetrics(t, operator)
					if got := restoredMetrics(t, s.disk); got.TotalCalls != want.TotalCalls+1 { // it is itself a call
						t.Errorf("%d calls were restored, want %d", got.TotalCalls, want.TotalCalls+1)
					}
					continue
				case "ping":
					agent.send(ping(id, "1"))
				case "keyed":
					agent.send(keyed("k", fetchOf(id, "a")))
				default:
					agent.send(fetchOf(id, doing))
				}
				if a := agent.next(); a.Meta.Causation != id {
					t.Fatalf("answer %s", a)
				}
				made++
			}
			m := askMetrics(t, operator)
			var got schema.AuditMetricsOutput
			for _, e := range auditLog(t, operator, "", limit) {
				if row, _ := schema.Lookup(e.Type); row.Internal || row.Domain == schema.Audit {
					continue
				}
				got.TotalCalls++
				if e.Status == schema.StatusDenied {
					got.DeniedCalls++
				}
				if e.Status == schema.StatusRunning {
					t.Errorf("running: %+v", e)
				}
			}
			own := m.TotalCalls - m.ByCode["Audit.Log"] - m.ByCode["Audit.Metrics"]
			if got.TotalCalls != own || got.DeniedCalls != m.DeniedCalls || int(own) != made {
				t.Errorf("%d calls are %d rows and counted as %d; denied rows %d, counted %d", made, got.TotalCalls, own, got.DeniedCalls, m.DeniedCalls)
			}
		})
	})
}

// restoredMetrics returns the metrics of a journal, after a snapshot of half of it.
func restoredMetrics(t *testing.T, disk *faultfs.Disk) *schema.AuditMetricsOutput {
	t.Helper()
	replay := func(m *metrics.Metrics, through func(uint64) bool) {
		r := journal.NewReader(disk, "/journal", journal.ReaderOptions{})
		defer r.Close()
		err := record.Replay(context.Background(), r, nil, nil, func(call *kernel.Call) {
			if through(call.Proof.Seq) {
				m.Recall(call)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	whole, half, rest := metrics.New(), metrics.New(), metrics.New()
	replay(whole, func(uint64) bool { return true })
	replay(half, func(seq uint64) bool { return seq%2 == 0 })
	if err := half.Snapshot()(rest.Restore); err != nil {
		t.Fatal(err)
	}
	replay(rest, func(seq uint64) bool { return seq%2 != 0 })
	for _, pid := range []int64{0, 7} {
		if diff := cmp.Diff(whole.ShownTo(pid, "https://test.local/"), rest.ShownTo(pid, "https://test.local/")); diff != "" {
			t.Errorf("metrics of a snapshot (-whole +restored):\n%s", diff)
		}
	}
	return rest.ShownTo(0, "")
}
