package actors_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/schema"
)

var errNoHost = errors.New("nothing is hosted here")

// realDomains returns the domains that have a part in a process's life.
func realDomains(t tb) map[schema.Domain]kernel.Domain {
	t.Helper()
	processes := process.New(nil)
	tokens := capability.New(nil, processes.Processes())
	ledger, err := resource.New(nil, tokens, processes.Processes())
	if err != nil {
		t.Fatalf("make resources: %v", err)
	}
	return map[schema.Domain]kernel.Domain{
		schema.Process: processes, schema.Capability: tokens, schema.Resource: ledger, schema.Ipc: ipc.New(ipc.Options{Capacity: 5}),
	}
}

func startHosted(t tb, domains map[schema.Domain]kernel.Domain, hosting actors.Hosting) *system {
	t.Helper()
	return startHosting(t, faultfs.NewDisk(), domains, idempotency.New(), textLog, hosting)
}

func hosted(id, more string) string {
	return command(id, "Syscall.Spawn", `{"child_agent_id":"x","command":["y"]`+more+`}`)
}

// expectNext waits for an answer without a limit.
func expectNext(t *testing.T, c *client, want string) {
	t.Helper()
	if got := string(c.next().Data); got != want {
		t.Errorf("answer %s, want %s", got, want)
	}
}

// A spawn is answered when its program could not be started and that is journaled; later calls see it.
func TestSpawnIsAnsweredWhenTheStartIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trying, fail := make(chan struct{}), make(chan struct{})
		s := startHosted(t, realDomains(t), actors.Hosting{Dir: t.TempDir(), Host: func() (*host.Host, error) {
			close(trying)
			<-fail
			return nil, errNoHost
		}})
		c := s.connect()
		c.send(hosted("a", ""), query("b", "Process.Get", `{"pid":1}`))
		<-trying
		if got := s.journaled(); len(got) != 4 { // the spawn with its three steps
			t.Errorf("when the program is started the journal holds %v", got)
		}
		expectNothing(t, c)
		close(fail)
		expectNext(t, c, `{"child_pid":1,"child_agent_id":"x"}`)
		if d := string(c.next().Data); !strings.Contains(d, `"TERMINATED"`) || !strings.Contains(d, errNoHost.Error()) {
			t.Errorf("then the process is %s", d)
		}
	})
}

// Answers leave in the order of their calls, also if an earlier one waits for an effect.
func TestAnswersBehindAnEffectWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trying, fail := make(chan struct{}), make(chan struct{})
		s := startHosted(t, realDomains(t), actors.Hosting{Dir: t.TempDir(), Host: func() (*host.Host, error) {
			close(trying)
			<-fail
			return nil, errNoHost
		}})
		spawner, c := s.connect(), s.connect()
		spawner.send(hosted("a", ""))
		<-trying
		c.send(command("t", "Syscall.Terminate", `{"target_pid":1}`))
		synctest.Wait()
		c.send(query("g", "Process.Get", `{"pid":1}`)) // in a batch of its own
		synctest.Wait()
		expectNothing(t, c)
		close(fail)
		expectNext(t, c, `{"target_pid":1}`)
		if d := string(c.next().Data); !strings.Contains(d, `"TERMINATED"`) || strings.Contains(d, errNoHost.Error()) {
			t.Errorf("the answer after that of the termination has the process as %s", d)
		}
	})
}

// The end of a program that could not be journaled on a full disk is journaled when there is room.
func TestEndIsNotedOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *system
		trying, fail := make(chan struct{}), make(chan struct{})
		s = startHosted(t, realDomains(t), actors.Hosting{Dir: t.TempDir(), Host: func() (*host.Host, error) {
			close(trying)
			<-fail
			return nil, errNoHost
		}})
		c := s.connect()
		c.send(hosted("a", ""))
		<-trying
		s.room.full(syscall.ENOSPC)
		close(fail)
		synctest.Wait()
		if s.room.refused() == 0 {
			t.Fatal("no write was refused: the test shows nothing")
		}
		expectNothing(t, c)
		s.room.free()
		expectNext(t, c, `{"child_pid":1,"child_agent_id":"x"}`)
		c.send(query("b", "Process.Get", `{"pid":1}`))
		if d := string(c.next().Data); !strings.Contains(d, `"not started"`) {
			t.Errorf("then the process is %s", d)
		}
	})
}

// A kernel whose process domain has failed still ends, although ends of programs cannot be journaled.
func TestKernelEndsWithoutItsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trying, fail := make(chan struct{}), make(chan struct{})
		domains := realDomains(t)
		domains[schema.Process] = brittle{domains[schema.Process].(*process.Domain)}
		s := startHosted(t, domains, actors.Hosting{Dir: t.TempDir(), Host: func() (*host.Host, error) {
			close(trying)
			<-fail
			return nil, errNoHost
		}})
		c, d := s.connect(), s.connect()
		c.send(hosted("a", ""))
		<-trying
		d.send(command("b", "Syscall.Spawn", `{"child_agent_id":"breaks"}`))
		expect(t, d, "b 500")
		expect(t, c, "a 500")
		close(fail)
		if err := s.end(); err == nil || !strings.Contains(err.Error(), "brittle") {
			t.Errorf("the kernel ended with %v", err)
		}
	})
}

// brittle panics at a word.
type brittle struct{ *process.Domain }

func (b brittle) Apply(call *kernel.Call) {
	if in, ok := call.Input.(*schema.SpawnInput); ok && in.ChildAgentID == "breaks" {
		panic("brittle")
	}
	b.Domain.Apply(call)
}

// A long-running kernel periodically removes the directories of forgotten agents.
func TestForgottenAgentsAreLookedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := make(chan struct{}, 9)
		s := startHosted(t, realDomains(t), actors.Hosting{
			Dir: t.TempDir(), Host: func() (*host.Host, error) { return nil, errNoHost }, Forget: func() { looks <- struct{}{} },
		})
		c := s.connect()
		for n := 1; n <= 2*actors.ForgetEvery; n++ {
			c.send(hosted("a", ""))
			c.next()
			synctest.Wait()
			if got, want := len(looks), n/actors.ForgetEvery; got != want {
				t.Fatalf("after the end of %d agents the kernel looked for directories %d times, want %d", n, got, want)
			}
		}
	})
}

// A panic in an agent's actor stops only that actor: the kernel continues, and ends cleanly.
func TestAgentsPanicIsItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startHosted(t, realDomains(t), actors.Hosting{
			Dir: t.TempDir(), Host: func() (*host.Host, error) { return nil, errNoHost },
			Policy: func(host.Restart) host.Policy { panic("no policy") },
		})
		c := s.connect()
		c.send(command("a", "Syscall.Spawn", `{"child_agent_id":"x"}`))
		expectNext(t, c, `{"child_pid":1,"child_agent_id":"x"}`)
		s.room.fullOnce(syscall.ENOSPC, `"type":"Process.NoteEnd"`)
		s.kernel.Rehost([]process.Hosted{{Program: kernel.Program{PID: 1}, State: "READY", Begun: true}})
		synctest.Wait()
		if s.room.refused() != 1 {
			t.Errorf("%d writes of the end failed, want one", s.room.refused())
		}
		c.send(query("r", "Process.List", `{}`)) // it is recorded, and its answers are queued
		c.next()
		synctest.Wait()
		c.send(query("b", "Process.Get", `{"pid":1}`))
		if d := string(c.next().Data); !strings.Contains(d, `"TERMINATED"`) || !strings.Contains(d, `"reason":"unknown"`) {
			t.Errorf("its process is %s", d)
		}
		c.send(command("t", "Syscall.Terminate", `{"target_pid":1}`))
		expectNext(t, c, `{"target_pid":1}`)
		s.endCleanly()
		if !strings.Contains(s.log.String(), "no policy") {
			t.Error("the log does not say what happened")
		}
	})
}
