package actors_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// slowly returns hosting that reports when a program is to be started, and fails the start when fail is closed.
func slowly(t *testing.T) (hosting actors.Hosting, trying, fail chan struct{}) {
	t.Helper()
	trying, fail = make(chan struct{}), make(chan struct{})
	return actors.Hosting{Dir: t.TempDir(), Host: func() (*host.Host, error) {
		close(trying)
		<-fail
		return nil, errNoHost
	}}, trying, fail
}

// A repetition under the same idempotency key is answered no earlier than the first call: of a spawn when its program could
// not be started, of a termination when no process of the program can be left.
func TestRepetitionWaitsAsTheFirst(t *testing.T) {
	t.Parallel()
	for name, repeated := range map[string]struct{ first, repetition, want string }{
		"spawn": {
			hosted("a", ""), hosted("r", ""), `{"child_pid":1,"child_agent_id":"x"}`,
		},
		"terminate": {
			command("t", "Syscall.Terminate", `{"target_pid":1}`), command("r", "Syscall.Terminate", `{"target_pid":1}`), `{"target_pid":1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hosting, trying, fail := slowly(t)
				s := startHosted(t, realDomains(t), hosting)
				spawner, first, second := s.connect(), s.connect(), s.connect()
				if name == "terminate" {
					spawner.send(hosted("a", ""))
					<-trying
				}
				first.send(keyed("k", repeated.first))
				<-trying
				synctest.Wait()
				second.send(keyed("k", repeated.repetition))
				synctest.Wait()
				expectNothing(t, first)
				expectNothing(t, second)
				close(fail)
				expectNext(t, first, repeated.want)
				expectNext(t, second, repeated.want)
				second.send(query("g", "Process.Get", `{"pid":1}`), query("h", "Process.Get", `{"pid":2}`))
				if d := string(second.next().Data); !strings.Contains(d, errNoHost.Error()) {
					t.Errorf("then the process is %s", d)
				}
				if other := second.next(); other.Code != "404" {
					t.Errorf("the repetition was done: %v", other)
				}
			})
		})
	}
}

// A kernel that dies between the end of a process and the start of its program leaves a process whose end is not journaled.
// The next kernel journals it, so no call waits for it.
func TestEndOfAProgramThatNeverStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hosting, trying, fail := slowly(t)
		s := startHosted(t, realDomains(t), hosting)
		c, d := s.connect(), s.connect()
		c.send(hosted("a", `,"restart":"always"`))
		<-trying
		d.send(keyed("k", command("t", "Syscall.Terminate", `{"target_pid":1}`)))
		synctest.Wait()
		disk := faultfs.FromImage(s.disk.Image()) // as a kernel that is killed now leaves it
		expectNothing(t, d)
		close(fail)

		domains, keys := realDomains(t), idempotency.New()
		r := journal.NewReader(disk, "/journal", journal.ReaderOptions{})
		if err := record.Replay(context.Background(), r, domains, nil, keys.Recall); err != nil {
			t.Fatalf("replay: %v", err)
		}
		_ = r.Close()
		left := domains[schema.Process].(*process.Domain).Hosted()
		next := startHosting(t, disk, domains, keys, textLog, actors.Hosting{Dir: t.TempDir()})
		next.kernel.Rehost(left)
		e := next.connect()
		e.send(keyed("k", command("u", "Syscall.Terminate", `{"target_pid":1}`)))
		expectNext(t, e, `{"target_pid":1}`)
		e.send(query("g", "Process.Get", `{"pid":1}`))
		if p := string(e.next().Data); !strings.Contains(p, `"TERMINATED"`) || !strings.Contains(p, `"reason":"unknown"`) {
			t.Errorf("after the restart the process is %s", p)
		}
	})
}
