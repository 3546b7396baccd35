package actors_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/schema"
)

// TestEndIsNotedOnAFullDisk shows that a call that ends a process with a program on a full disk is answered: all notes
// about the program's end are written, including those that were refused before, and those of a program that an agent had
// ended.
func TestEndIsNotedOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, ended := range []string{"by the operator", "by an agent before", "with the kernel"} {
		t.Run(ended, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				trying, fail := make(chan struct{}), make(chan struct{})
				s := startReserving(t, realDomains(t), actors.Hosting{Dir: t.TempDir(), Host: func() (*host.Host, error) {
					close(trying)
					<-fail
					return nil, errNoHost
				}})
				agent := func() *client { return s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 1) }
				operator, parent, again := s.connect(), agent(), agent()
				operator.send(spawn("p", "parent"))
				expect(t, operator, `p {"child_pid":1,"child_agent_id":"parent"}`)
				parent.send(hosted("a", ""))
				<-trying
				if ended == "by an agent before" {
					again.send(terminate("b", 2))
					synctest.Wait()
				}
				s.fill(operator)
				close(fail)
				synctest.Wait()
				expectNothing(t, parent) // the note that there is no program is not written
				if ended == "by an agent before" {
					expect(t, again, `b {"target_pid":2}`)
				}
				if ended == "with the kernel" {
					s.kernel.StopPrograms(t.Context())
					s.endCleanly()
				} else {
					operator.send(terminate("t", 2))
					expect(t, operator, `t {"target_pid":2}`)
				}
				if list := s.entries(); list[len(list)-1].Type != "Process.NoteEnd" {
					t.Errorf("the journal ends with %+v", list[len(list)-1])
				}
			})
		})
	}
}

// TestKillIsAnswered uses up the reserve at each point of a kill: the kill is done and its caller gets the answer, or it is
// refused, and the end of the program is journaled when there is room.
func TestKillIsAnswered(t *testing.T) {
	t.Parallel()
	answers := make(map[string]int)
	for reserve := 500; reserve < 4000; reserve += 50 {
		synctest.Test(t, func(t *testing.T) {
			trying, fail := make(chan struct{}), make(chan struct{})
			s := startHosting(t, faultfs.NewDisk(), realDomains(t), idempotency.New(), textLog, actors.Hosting{Dir: t.TempDir(), Host: func() (*host.Host, error) {
				close(trying)
				<-fail
				return nil, errNoHost
			}}, reserving(reserve))
			spawner, operator := s.connect(), s.connect()
			spawner.send(hosted("a", ""))
			<-trying
			s.fill(operator)
			operator.send(terminate("t", 1))
			synctest.Wait()
			close(fail)
			synctest.Wait()
			last := func() string { return s.entries()[len(s.entries())-1].Type }
			got, noted := strings.Join(show(operator.pending()), ", "), last() == "Process.NoteEnd"
			if got == `t {"target_pid":1}` && !noted {
				got = "done, and not noted"
			}
			answers[got]++
			s.disk.Free()
			time.Sleep(time.Minute)
			if last() != "Process.NoteEnd" {
				t.Errorf("a reserve of %d: in the end the last entry is a %s", reserve, last())
			}
		})
	}
	for _, want := range []string{"t 503", "done, and not noted", `t {"target_pid":1}`} {
		if answers[want] == 0 {
			t.Errorf("no run had the answer %s", want)
		}
		delete(answers, want)
	}
	if len(answers) > 0 {
		t.Errorf("some runs had other answers: %v", answers)
	}
}
