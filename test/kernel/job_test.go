package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// begin starts a job, and returns its id.
func (c *client) begin(data string) string {
	c.t.Helper()
	var out schema.JobStartOutput
	c.call("Job.Start", data, &out)
	if out.Status != "pending" {
		c.t.Errorf("%s: started as %s", data, out.Status)
	}
	return out.JobID
}

// follow returns a connection that follows all jobs.
func (d *running) follow(t *testing.T) *client {
	t.Helper()
	c := d.dial(t)
	c.call("Job.Subscribe", `{}`, nil)
	return c
}

// told receives the next event, which must have the type and the job.
func (c *client) told(typ, label string) (s schema.JobState) {
	c.t.Helper()
	a := c.event(schema.OsMessage, typ)
	if err := json.Unmarshal(a.Data, &s); err != nil || s.JobID != label {
		c.t.Fatalf("%s of %s, want %s", a.Type, a.Data, label)
	}
	return s
}

// TestJobs runs jobs of each kind of call, and follows them.
func TestJobs(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, f := d.dial(t), d.follow(t)

	one := c.begin(`{"name":"Memory.Set","payload":{"key":"k","value":[1]}}`)
	f.told("Job.Started", one)
	f.told("Job.Completed", one)
	if a := c.ask("Memory.Get", `{"key":"k"}`); string(a.Data) != `[1]` {
		t.Errorf("stored %s", a.Data)
	}
	query := c.begin(`{"name":"Memory.Get","payload":{"key":"k"}}`)
	f.told("Job.Started", query)
	if s := f.told("Job.Completed", query); string(s.Result) != `[1]` || s.Runs != 1 {
		t.Errorf("completed: %+v", s)
	}
	missing := c.begin(`{"name":"Memory.Get","payload":{"key":"none"}}`)
	f.told("Job.Started", missing)
	if s := f.told("Job.Failed", missing); s.ErrorID != "memory.not_found" || s.Status != "failed" {
		t.Errorf("failed: %+v", s)
	}
	path := c.begin(`{"name":"no/such/tool","payload":{}}`)
	f.told("Job.Started", path)
	if s := f.told("Job.Failed", path); s.Error == "" {
		t.Errorf("failed: %+v", s)
	}

	provider := d.dial(t)
	provider.provide("Sum.Add", func(asked) string { return `"data":{"sum":3}` })
	registered := c.begin(`{"name":"Sum.Add"}`)
	f.told("Job.Started", registered)
	if s := f.told("Job.Completed", registered); string(s.Result) != `{"sum":3}` {
		t.Errorf("completed: %+v", s)
	}

	long := strings.Repeat("x", 12_100)
	c.call("Memory.Set", fmt.Sprintf(`{"key":"long","value":%q}`, long), nil)
	much := c.begin(`{"name":"Memory.Get","payload":{"key":"long"}}`)
	f.told("Job.Started", much)
	if s := f.told("Job.Failed", much); s.ErrorID != "job.result_too_long" {
		t.Errorf("failed: %+v", s)
	}
}

// TestJobTrace: the calls of a job name the call that started it as their cause, and have its correlation.
func TestJobTrace(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, f := d.dial(t), d.follow(t)
	a := c.askWith("Job.Start", `{"name":"Clock.Get"}`, `,"correlation":"work"`)
	f.told("Job.Started", "job-1")
	f.told("Job.Completed", "job-1")
	found := map[string]bool{}
	for _, e := range c.wholeLog() {
		if e.Causation == a.Metadata.Causation && e.Correlation == "work" {
			found[e.Type] = true
		}
	}
	if len(found) != 3 || !found["Job.Begin"] || !found["Clock.Get"] || !found["Job.End"] {
		t.Errorf("calls caused by the start of the job: %v", found)
	}
}

// TestJobAuthority: a job may do what its process may when the job runs, not when it was started, and nothing if the
// process has ended.
func TestJobAuthority(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, f := d.dial(t), d.follow(t)
	pid := c.spawn(0, `{"allowed_syscalls":["Job.*","Ipc.Receive"]}`)
	denied := c.begin(fmt.Sprintf(`{"pid":%d,"name":"Memory.Set","payload":{"key":"k","value":1}}`, pid))
	f.told("Job.Started", denied)
	if s := f.told("Job.Failed", denied); s.ErrorID != "capability.denied" || s.PID != pid {
		t.Errorf("failed: %+v", s)
	}
	c.refused(404, "Memory.Get", `{"key":"k"}`)

	later := c.begin(fmt.Sprintf(`{"pid":%d,"name":"Clock.Get","at":4102444800000}`, pid))
	waits := c.begin(fmt.Sprintf(`{"pid":%d,"name":"Ipc.Receive","payload":{"wait_ms":600000}}`, pid))
	f.told("Job.Started", waits)
	c.call("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
	if s := f.told("Job.Failed", waits); s.Error == "" { // a change, after which the other one is checked
		t.Errorf("failed: %+v", s)
	}
	if s := f.told("Job.Failed", later); s.ErrorID != "job.no_process" || s.Runs != 0 {
		t.Errorf("failed: %+v", s)
	}
}

// TestJobEnds: a waiting job is cancelled, another exceeds its time, and neither affects others.
func TestJobEnds(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, f := d.dial(t), d.follow(t)
	pid := c.spawn(0, messenger)
	receive := fmt.Sprintf(`{"name":"Ipc.Receive","payload":{"pid":%d,"wait_ms":600000}`, pid)
	waits := c.begin(receive + `}`)
	f.told("Job.Started", waits)
	c.call("Job.Cancel", fmt.Sprintf(`{"jobId":%q}`, waits), nil)
	if s := f.told("Job.Failed", waits); s.Status != "canceled" {
		t.Errorf("cancelled: %+v", s)
	}
	slow := c.begin(receive + `,"timeout":20}`)
	f.told("Job.Started", slow)
	if s := f.told("Job.Failed", slow); s.ErrorID != "job.timeout" {
		t.Errorf("failed: %+v", s)
	}
	c.mail(pid, 5, "")
	if got := c.receive(pid, ""); got != "5" {
		t.Errorf("received %s", got)
	}
}

// TestJobAgain: a repeated start with one key is one job, and a job with a period runs again.
func TestJobAgain(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, f := d.dial(t), d.follow(t)
	for range 3 {
		if a := c.askWith("Job.Start", `{"name":"Clock.Get"}`, `,"idempotencyKey":"once"`); string(a.Data) != `{"jobId":"job-1","status":"pending"}` {
			t.Errorf("started %s", a.Data)
		}
	}
	f.told("Job.Started", "job-1")
	f.told("Job.Completed", "job-1")
	every := c.begin(`{"name":"Clock.Get","every":1000}`)
	for run := range int64(2) {
		if s := f.told("Job.Started", every); s.Runs != run+1 {
			t.Errorf("started: %+v", s)
		}
		if s := f.told("Job.Completed", every); s.Last != "completed" || s.Status != "pending" || s.Next <= s.Ended {
			t.Errorf("completed: %+v", s)
		}
	}
	c.call("Job.Cancel", fmt.Sprintf(`{"jobId":%q}`, every), nil)
	f.told("Job.Failed", every)
}

// TestJobsSurvive: jobs that wait, run or have ended continue with the next kernel, and nothing is done twice.
func TestJobsSurvive(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, f := d.dial(t), d.follow(t)
	pid := c.spawn(0, messenger)
	ended := c.begin(`{"name":"Clock.Get"}`)
	f.told("Job.Started", ended)
	f.told("Job.Completed", ended)
	later := c.begin(`{"name":"Clock.Get","at":4102444800000}`)
	soon := c.begin(fmt.Sprintf(`{"name":"Clock.Get","at":%d}`, time.Now().Add(time.Second).UnixMilli()))
	runs := c.begin(fmt.Sprintf(`{"name":"Ipc.Receive","payload":{"pid":%d,"wait_ms":600000}}`, pid))
	f.told("Job.Started", runs)
	d.restart(t)

	c, f = d.dial(t), d.follow(t)
	for label, status := range map[string]string{ended: "completed", later: "pending", runs: "running"} {
		var s schema.JobState
		if c.call("Job.Status", fmt.Sprintf(`{"jobId":%q}`, label), &s); s.Status != status {
			t.Errorf("%s is %s, want %s", label, s.Status, status)
		}
	}
	c.mail(pid, 7, "")
	ends := map[string]schema.JobState{}
	var early schema.JobState // due before the other kernel was started
	if c.call("Job.Status", fmt.Sprintf(`{"jobId":%q}`, soon), &early); early.Status == "completed" {
		ends[soon] = early
	}
	for len(ends) < 2 {
		a := f.next()
		if a.Type == "Job.Completed" {
			var s schema.JobState
			testkit.Must(t, json.Unmarshal(a.Data, &s))
			ends[s.JobID] = s
		} else if a.Type != "Job.Started" {
			t.Fatalf("%s %s", a.Type, a.Data)
		}
	}
	if s := ends[runs]; s.Runs != 1 || !strings.Contains(string(s.Result), `"payload":7`) {
		t.Errorf("the job that was running: %+v", s)
	}
	if s := ends[soon]; s.Runs != 1 {
		t.Errorf("the job that was due: %+v", s)
	}
}
