package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/effect/jobs"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/job"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// shell is a kernel with jobs only. Calls of other domains are answered by the field call.
type shell struct {
	t    *testing.T
	call func(ctx context.Context, caller kernel.Caller, m schema.Message) ([]byte, error)

	mu      sync.Mutex
	jobs    *job.Domain
	journal domaintest.Journal
	refuses int // number of the kernel's own commands that fail, as on a full disk
}

func (s *shell) Do(ctx context.Context, own kernel.Own) (kernel.Answer, error) {
	if own.Request.Row == nil {
		data, err := s.call(ctx, own.Caller, own.Message)
		return kernel.Answer{Data: data}, err
	}
	data, err := s.command(own.Request)
	return kernel.Answer{Data: data}, err
}

func (s *shell) command(request schema.Request) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses > 0 {
		s.refuses--
		return nil, fault.JournalUnavailable.New("the disk is full")
	}
	data, err := schema.Marshal(request.Input)
	if err != nil {
		return nil, err
	}
	return s.apply(kernel.Operator, request.Row.Type, string(data))
}

func (s *shell) apply(pid int64, typ, data string) ([]byte, error) {
	call := domaintest.Request(s.t, typ, data)
	call.PID, call.Time = pid, time.Now().UnixMilli()
	result, err := s.jobs.Decide(call)
	if err != nil {
		return nil, err
	}
	s.journal.Apply(s.jobs, call, result.Data)
	s.jobs.Publish()
	return result.Data, nil
}

func (s *shell) start(pid int64, data string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.apply(pid, "Job.Start", data); err != nil {
		s.t.Fatal(err)
	}
}

// status returns the status of a job, with the id of its error.
func (s *shell) status(label string) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := s.apply(kernel.Operator, "Job.Status", fmt.Sprintf(`{"jobId":%q}`, label))
	testkit.Must(s.t, err)
	out, err := schema.JobStatus.Decode(data)
	testkit.Must(s.t, err)
	return out.Status + " " + out.ErrorID
}

func (s *shell) runner() *jobs.Runner {
	r := &jobs.Runner{Jobs: s.jobs, Kernel: s, Processes: alive{}, Log: slog.New(slog.DiscardHandler)}
	r.Start()
	return r
}

// alive is every process.
type alive struct{}

func (alive) Process(pid int64) *schema.Descriptor { return &schema.Descriptor{PID: pid} }

func test(t *testing.T, run func(s *shell)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { run(&shell{t: t, jobs: job.New(nil)}) })
}

// TestGoesOn: a run that the end of a kernel has interrupted is repeated under its key by the next kernel; the outcome of an
// interrupted effect is unknown.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	test(t, func(s *shell) {
		var keys []string
		s.call = func(ctx context.Context, _ kernel.Caller, m schema.Message) ([]byte, error) {
			if keys = append(keys, m.Meta.IdempotencyKey); len(keys) > 1 {
				return nil, idempotency.Unknown(m.Type)
			}
			<-ctx.Done()
			return nil, fault.CallCancelled.New("stopped")
		}
		s.start(7, `{"name":"Http.Fetch","payload":{"url":"https://example.com/"}}`)
		first := s.runner()
		synctest.Wait()
		first.Close()
		if got := s.status("job-1"); got != "running " {
			t.Errorf("with no kernel: %s", got)
		}
		again := job.New(nil)
		domaintest.Restore(t, s.jobs, again)
		s.jobs = again
		again.Publish()
		second := s.runner()
		synctest.Wait()
		second.Close()
		if got := s.status("job-1"); got != "unknown kernel.interrupted" || len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
			t.Errorf("%s, by the keys %q", got, keys)
		}
	})
}

// TestFullDisk: an entry that cannot be written is retried, and the call is made once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	test(t, func(s *shell) {
		calls := 0
		s.call = func(context.Context, kernel.Caller, schema.Message) ([]byte, error) {
			calls++
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refuses = 3
			return []byte(`1`), nil
		}
		s.refuses = 3
		s.start(7, `{"name":"Clock.Get"}`)
		r := s.runner()
		time.Sleep(time.Minute) // of the test's clock
		r.Close()
		if got := s.status("job-1"); got != "completed " || calls != 1 {
			t.Errorf("%s after %d calls", got, calls)
		}
	})
}

// TestTurns: a limited number of jobs of one process run at the same time, and jobs of another process do not wait for them.
func TestTurns(t *testing.T) {
	t.Parallel()
	test(t, func(s *shell) {
		var mu sync.Mutex
		running := map[int64]int{}
		release := make(chan struct{})
		s.call = func(ctx context.Context, caller kernel.Caller, _ schema.Message) ([]byte, error) {
			mu.Lock()
			running[caller.PID]++
			mu.Unlock()
			select {
			case <-release:
			case <-ctx.Done():
			}
			return []byte(`1`), nil
		}
		for range 2 * jobs.MaxEach {
			s.start(7, `{"name":"Clock.Get"}`)
		}
		s.start(8, `{"name":"Clock.Get"}`)
		r := s.runner()
		synctest.Wait()
		mu.Lock()
		if running[7] != jobs.MaxEach || running[8] != 1 {
			t.Errorf("runs at the same time: %v", running)
		}
		mu.Unlock()
		close(release)
		synctest.Wait()
		if running[7] != 2*jobs.MaxEach {
			t.Errorf("runs at the end: %v", running)
		}
		r.Close()
	})
}

// TestSleeps: an idle runner waits, and runs a job that becomes due.
func TestSleeps(t *testing.T) {
	t.Parallel()
	test(t, func(s *shell) {
		var at []time.Duration
		begun := time.Now()
		s.call = func(context.Context, kernel.Caller, schema.Message) ([]byte, error) {
			at = append(at, time.Since(begun))
			return []byte(`1`), nil
		}
		r := s.runner()
		s.start(7, fmt.Sprintf(`{"name":"Clock.Get","at":%d,"every":60000}`, begun.Add(time.Hour).UnixMilli()))
		time.Sleep(time.Hour + 90*time.Second)
		synctest.Wait()
		r.Close()
		if len(at) != 2 || at[0] != time.Hour || at[1] != time.Hour+time.Minute {
			t.Errorf("called after %v", at)
		}
	})
}

// TestTurnsOfTheOperator: jobs of agents that take all turns hold up other agents' jobs, and none of the operator's.
func TestTurnsOfTheOperator(t *testing.T) {
	t.Parallel()
	test(t, func(s *shell) {
		var mu sync.Mutex
		agents, operators := 0, 0
		s.call = func(ctx context.Context, caller kernel.Caller, _ schema.Message) ([]byte, error) {
			mu.Lock()
			if caller.PID == kernel.Operator {
				operators++
			} else {
				agents++
			}
			mu.Unlock()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for pid := range int64(jobs.MaxAll/jobs.MaxEach + 1) {
			for range jobs.MaxEach {
				s.start(pid+1, `{"name":"Clock.Get"}`)
			}
		}
		s.start(kernel.Operator, `{"name":"Clock.Get"}`)
		r := s.runner()
		synctest.Wait()
		mu.Lock()
		if agents != jobs.MaxAll || operators != 1 {
			t.Errorf("%d jobs of agents and %d of the operator run", agents, operators)
		}
		mu.Unlock()
		r.Close()
	})
}
