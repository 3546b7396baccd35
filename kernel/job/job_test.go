package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/job"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const home, away = "https://home.example/", "https://away.example/"

// shell is a domain with its journal.
type shell struct {
	t       domaintest.TB
	domain  *job.Domain
	journal domaintest.Journal
	now     int64
	last    kernel.Result
}

func newShell(t domaintest.TB) *shell { return &shell{t: t, domain: job.New(nil), now: 1_000_000} }

// run makes a call of pid in an origin, and returns its reply or its error.
func (s *shell) run(pid int64, origin, typ, data string) (string, *fault.Fault) {
	s.t.Helper()
	call := domaintest.Request(s.t, typ, data)
	call.PID, call.Origin, call.Time = pid, origin, s.now
	result, err := domaintest.Decide(s.t, s.domain, call)
	if s.last = result; err != nil {
		return "", domaintest.Shown(s.t, err)
	}
	s.journal.Apply(s.domain, call, result.Data)
	s.domain.Publish()
	return string(result.Data), nil
}

// must runs a call that must succeed.
func (s *shell) must(pid int64, typ, data string) string {
	s.t.Helper()
	out, err := s.run(pid, home, typ, data)
	if err != nil {
		s.t.Fatalf("%s %s: %v", typ, data, err)
	}
	return out
}

// refused runs a call that must fail.
func (s *shell) refused(pid int64, typ, data string, id fault.ID, text string) {
	s.t.Helper()
	if out, err := s.run(pid, home, typ, data); err == nil || err.ID != id || !strings.Contains(err.Message, text) {
		s.t.Errorf("%s %s of %d: %s, %v, want %s with %q", typ, data, pid, out, err, id, text)
	}
}

// state is the job's status and its due time, as its owner sees them.
func (s *shell) state(label string) (status string, next int64) {
	s.t.Helper()
	out, err := schema.JobStatus.Decode([]byte(s.must(kernel.Operator, "Job.Status", fmt.Sprintf(`{"jobId":%q}`, label))))
	testkit.Must(s.t, err)
	return out.Status, out.Next
}

func (s *shell) want(label, status string, next int64) {
	s.t.Helper()
	if got, due := s.state(label); got != status || due != next {
		s.t.Errorf("%s is %s, due at %d; want %s, %d", label, got, due, status, next)
	}
}

func (s *shell) begin(label string) { s.must(0, "Job.Begin", fmt.Sprintf(`{"job_id":%q}`, label)) }

func (s *shell) end(label string, run int, outcome string) {
	s.must(0, "Job.End", fmt.Sprintf(`{"job_id":%q,"run":%d,"outcome":%s}`, label, run, outcome))
}

const (
	done   = `{"kind":"reply","data":7}`
	broken = `{"kind":"error","data":{"code":404,"message":"no"},"error":"memory.not_found"}`
	cutOff = `{"kind":"error","data":{"code":500,"message":"?"},"error":"kernel.interrupted"}`
)

// check compares the state with that of a replay and of a snapshot.
func (s *shell) check() {
	s.t.Helper()
	s.journal.Check(s.t, s.domain, job.New(nil), job.New(nil))
}

func TestOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for i, outcome := range []struct{ text, status string }{{done, "completed"}, {broken, "failed"}, {cutOff, "unknown"}} {
		label := fmt.Sprintf("job-%d", i+1)
		if out := s.must(7, "Job.Start", `{"name":"Clock.Get","at":1000500}`); out != fmt.Sprintf(`{"jobId":%q,"status":"pending"}`, label) {
			t.Errorf("started: %s", out)
		}
		s.want(label, "pending", 1_000_500)
		s.refused(0, "Job.Begin", fmt.Sprintf(`{"job_id":%q}`, label), fault.JobNotFound, "is not due")
		s.now = 1_000_500
		s.begin(label)
		s.want(label, "running", 1_000_500)
		s.refused(0, "Job.Begin", fmt.Sprintf(`{"job_id":%q}`, label), fault.JobNotFound, "is not due")
		s.end(label, 2, broken) // there is no such run
		s.want(label, "running", 1_000_500)
		s.end(label, 1, outcome.text)
		s.want(label, outcome.status, 0)
		s.end(label, 1, broken) // twice
		s.want(label, outcome.status, 0)
		s.now = 1_000_000
	}
	if out := s.must(7, "Job.Status", `{"jobId":"job-1"}`); !strings.HasSuffix(out, `"result":7}`) {
		t.Errorf("completed: %s", out)
	}
	if out := s.must(7, "Job.Status", `{"jobId":"job-2"}`); !strings.HasSuffix(out, `"error":"no","errorId":"memory.not_found"}`) {
		t.Errorf("failed: %s", out)
	}
	s.check()
}

// TestPeriod: the next run is at the next of the job's times, however long a run takes or the kernel is down.
func TestPeriod(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must(7, "Job.Start", `{"name":"Clock.Get","at":1001000,"every":1000}`)
	for run, ended := range []int64{1_001_001, 1_002_999, 1_004_000, 1_099_500} {
		_, s.now = s.state("job-1")
		s.begin("job-1")
		s.now = ended
		s.end("job-1", run+1, []string{done, broken}[run%2])
		s.want("job-1", "pending", ended/1000*1000+1000)
	}
	if out := s.must(7, "Job.Status", `{"jobId":"job-1"}`); !strings.Contains(out, `"runs":4,"last":"failed","ended":1099500,"error":"no"`) {
		t.Errorf("a job with a period: %s", out)
	}
	s.now = 1_100_000
	s.begin("job-1")
	s.must(7, "Job.Cancel", `{"jobId":"job-1"}`)
	s.end("job-1", 5, done) // too late
	s.want("job-1", "canceled", 0)
	s.must(7, "Job.Start", `{"name":"Clock.Get","every":1000}`)
	s.end("job-2", 0, broken) // its process has ended
	s.want("job-2", "failed", 0)
	s.check()
}

func TestWhoseJobs(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must(7, "Job.Start", `{"name":"Clock.Get"}`)
	s.must(8, "Job.Start", `{"name":"Clock.Get"}`)
	s.refused(8, "Job.Status", `{"jobId":"job-1"}`, fault.JobNotFound, "no such job")
	s.refused(8, "Job.Cancel", `{"jobId":"job-1"}`, fault.JobNotFound, "no such job")
	for _, label := range []string{"job-01", "job-3", "job-", "1", "job-+1", "job-99999999999999999999"} {
		s.refused(7, "Job.Status", fmt.Sprintf(`{"jobId":%q}`, label), fault.JobNotFound, "no such job")
	}
	if _, err := s.run(kernel.Operator, away, "Job.Status", `{"jobId":"job-1"}`); err == nil {
		t.Error("the operator sees jobs of another origin")
	}
	for pid, many := range map[int64]int{7: 1, 8: 1, 9: 0, kernel.Operator: 2} {
		if out := s.must(pid, "Job.List", `{}`); strings.Count(out, "jobId") != many {
			t.Errorf("%d is shown %s, want %d jobs", pid, out, many)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for range 90 {
		s.must(7, "Job.Start", fmt.Sprintf(`{"name":%q}`, "/"+strings.Repeat("x", 400)))
		s.now++
	}
	s.must(7, "Job.Cancel", `{"jobId":"job-90"}`)
	for data, want := range map[string]string{
		`{"status":"canceled"}`:          "job-90",
		`{"since":1000088}`:              "job-89 job-90",
		`{"limit":2,"status":"pending"}`: "job-88 job-89",
		`{"status":"running"}`:           "",
	} {
		out, err := schema.JobList.Decode([]byte(s.must(7, "Job.List", data)))
		testkit.Must(t, err)
		var got []string
		for _, j := range out.Jobs {
			got = append(got, j.JobID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", data, got, want)
		}
	}
	if out := s.must(7, "Job.List", `{"limit":1000}`); len(out) > kernel.MaxData || !strings.Contains(out, `"job-90"`) || strings.Contains(out, `"job-1"`) {
		t.Errorf("a long list has %d bytes", len(out))
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for data, text := range map[string]string{
		`{"name":"Memory.Sett"}`:                                        "is no syscall",
		`{"name":"Job.Begin"}`:                                          "its own connection",
		`{"name":"Job.Start"}`:                                          "its own connection",
		`{"name":"Ipc.Subscribe"}`:                                      "its own connection",
		`{"name":"Process.Attach","payload":{"agent_id":"x"}}`:          "its own connection",
		`{"name":"Syscall.Register"}`:                                   "its own connection",
		`{"name":"Syscall.Complete"}`:                                   "its own connection",
		`{"name":"Syscall.Progress"}`:                                   "its own connection",
		`{"name":"Syscall.Authenticate"}`:                               "its own connection",
		`{"name":"Memory.Get","payload":{"key":"k","keys":1}}`:          "keys is not a member",
		`{"name":"Memory.Set","payload":{"key":"vault/k","value":"v"}}`: "the journal never keeps",
		`{"name":"Crypto.Seal","payload":{"plaintext":"s"}}`:            "the journal never keeps",
		`{"name":"/x","payload":"` + strings.Repeat("x", 16<<10) + `"}`: "it may have 16384 bytes",
		`{"name":"Clock.Get","every":999}`:                              "every",
		`{"name":"Clock.Get","timeout":0}`:                              "timeout",
		`{"name":"Clock.Get","at":-1}`:                                  "at",
		`{"name":"","payload":{}}`:                                      "name",
		`{"name":"Clock.Get","payload":{"payload":1,"payload":2}}`:      "",
		`{"name":"Clock.Get","payload":{"payload":1},"cron":"* * * "}`:  "cron",
	} {
		call, bad := request(data)
		if bad == nil {
			call.PID, call.Origin, call.Time = 7, home, s.now
			_, err := s.domain.Decide(call)
			bad = fault.Of(err)
			if err == nil {
				t.Errorf("%s is accepted", data)
				continue
			}
		}
		if bad.ID != fault.WireInvalidInput && bad.ID != fault.WireInvalidJSON || !strings.Contains(bad.Message, text) {
			t.Errorf("%s: %v, want %q", data, bad, text)
		}
	}
	if got := string(domaintest.Snapshot(t, s.domain)); got != "" {
		t.Errorf("refused calls have left the state %s", got)
	}
}

// request is a call of Job.Start, or its error.
func request(data string) (*kernel.Call, *fault.Fault) {
	m, invalid := schema.Decode([]byte(`{"kind":"command","type":"Job.Start","data":`+data+`,"metadata":{"id":"m","timestamp":1}}`), schema.OsMessage)
	if invalid != nil {
		return nil, fault.Of(invalid)
	}
	row, in, err := m.Request()
	return &kernel.Call{Request: kernel.Request{Message: m, Syscall: row, Input: in}}, err
}

// TestBounds: the numbers of active and of ended jobs of an agent are bounded; the oldest ended ones are forgotten.
func TestBounds(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for range job.MaxEach {
		s.must(7, "Job.Start", `{"name":"Clock.Get"}`)
	}
	s.refused(7, "Job.Start", `{"name":"Clock.Get"}`, fault.JobTooMany, "100 jobs of pid 7")
	s.must(8, "Job.Start", `{"name":"Clock.Get"}`) // of another process
	for i := range job.MaxEach + 50 {
		s.must(7, "Job.Cancel", fmt.Sprintf(`{"jobId":"job-%d"}`, []int{i + 1, i + 2}[min(1, i/job.MaxEach)]))
		s.must(7, "Job.Start", `{"name":"Clock.Get"}`)
	}
	s.refused(7, "Job.Status", `{"jobId":"job-50"}`, fault.JobNotFound, "forgotten")
	if status, _ := s.state("job-51"); status != "canceled" {
		t.Errorf("job-51 is %s", status)
	}
	s.check()
}

// TestEvents: each beginning and end of the follower's own jobs is pushed once, in order.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must(7, "Job.Start", `{"name":"Clock.Get"}`)
	s.must(7, "Job.Subscribe", `{}`)
	follow := s.last.Lasting.Follow
	ask := func() (told []string) {
		t.Helper()
		data, err := schema.Marshal(follow.Input)
		testkit.Must(t, err)
		s.must(7, "Job.Watch", string(data))
		if s.last.Wait == kernel.Forever {
			return nil
		}
		for _, e := range s.last.Lasting.Events {
			label, _, _ := strings.Cut(strings.TrimPrefix(string(e.Data), `{"jobId":"`), `"`)
			told = append(told, e.Type+" "+label)
		}
		follow = s.last.Lasting.Follow
		return told
	}
	want := func(want ...string) {
		t.Helper()
		if got := ask(); !slices.Equal(got, want) {
			t.Errorf("got events %q, want %q", got, want)
		}
		if got := ask(); got != nil {
			t.Errorf("events are pushed again: %q", got)
		}
	}
	want()
	s.begin("job-1")
	want("Job.Started job-1")
	s.end("job-1", 1, done)
	want("Job.Completed job-1")
	s.must(7, "Job.Start", `{"name":"Clock.Get","every":1000}`)
	s.must(8, "Job.Start", `{"name":"Clock.Get"}`)
	s.begin("job-3") // of another process
	want()
	s.begin("job-2")
	s.end("job-2", 1, broken)
	want("Job.Started job-2", "Job.Failed job-2")
	s.must(7, "Job.Cancel", `{"jobId":"job-2"}`)
	want("Job.Failed job-2")
}

// TestModel: after any calls the bounds hold, and a replay and a snapshot give the same state.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := newShell(rt)
		for range rapid.IntRange(1, 60).Draw(rt, "calls") {
			pid := rapid.Int64Range(0, 2).Draw(rt, "pid")
			label := fmt.Sprintf("job-%d", rapid.IntRange(1, 12).Draw(rt, "job"))
			s.now += rapid.Int64Range(0, 1500).Draw(rt, "later")
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0:
				_, _ = s.run(pid, home, "Job.Start", `{"name":"Clock.Get","every":1000}`)
			case 1:
				_, _ = s.run(pid, home, "Job.Start", `{"name":"Clock.Get"}`)
			case 2:
				_, _ = s.run(pid, home, "Job.Cancel", fmt.Sprintf(`{"jobId":%q}`, label))
			case 3:
				_, _ = s.run(0, home, "Job.Begin", fmt.Sprintf(`{"job_id":%q}`, label))
			case 4:
				_, _ = s.run(0, home, "Job.End", fmt.Sprintf(`{"job_id":%q,"run":%d,"outcome":%s}`, label, rapid.IntRange(0, 3).Draw(rt, "run"), done))
			}
		}
		for _, j := range s.domain.Active() {
			if j.Status == schema.JobPending && j.Next == 0 {
				rt.Fatalf("%s is pending and has no due time", j.Label())
			}
		}
		s.check()
	})
}
