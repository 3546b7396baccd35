package actors_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
)

// TestMailboxOrder shows in which order messages are handled that find the actor busy with the message "go", which
// posts them.
func TestMailboxOrder(t *testing.T) {
	t.Parallel()
	suspend, resume := &actor.SuspendMailbox{}, &actor.ResumeMailbox{}
	type post struct {
		system  bool
		message any
	}
	tests := []struct {
		name  string
		posts []post
		after []any // system messages, posted when that is done
		want  []string
	}{
		{
			name:  "first in first out",
			posts: []post{{false, 1}, {false, 2}, {false, 3}},
			want:  []string{"user 1", "user 2", "user 3"},
		},
		{
			name:  "system before user",
			posts: []post{{false, 1}, {true, 2}, {false, 3}, {true, 4}},
			want:  []string{"system 2", "system 4", "user 1", "user 3"},
		},
		{
			name:  "suspended",
			posts: []post{{false, 1}, {true, suspend}, {true, 2}, {false, 3}},
			want:  []string{"system 2"},
		},
		{
			name:  "suspended, then system messages",
			posts: []post{{false, 1}, {true, suspend}},
			after: []any{2, 3},
			want:  []string{"system 2", "system 3"},
		},
		{
			name:  "resumed",
			posts: []post{{false, 1}, {true, suspend}, {false, 2}},
			after: []any{3, resume},
			want:  []string{"system 3", "user 1", "user 2"},
		},
		{
			name:  "a panic is escalated, and the next message is handled",
			posts: []post{{false, 1}, {false, "panic"}, {false, 2}, {true, "panic"}, {true, 3}},
			want: []string{
				"system panic", "failure panic: on panic", "system 3",
				"user 1", "user panic", "failure panic: on panic", "user 2",
			},
		},
	}
	for _, test := range tests {
		for name, inline := range map[string]func(any) bool{"inline": actors.Always, "scheduled": never} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				t.Parallel()
				box, workers := actors.NewMailbox(inline), &byHand{}
				i := &invoker{}
				i.on = func(message any) {
					switch message {
					case "go":
						for _, p := range test.posts {
							if p.system {
								box.PostSystemMessage(p.message)
							} else {
								box.PostUserMessage(p.message)
							}
						}
						if len(i.handled) != 1 {
							t.Errorf("handled within the handler: %q", i.handled[1:])
						}
					case "panic":
						panic("on panic")
					}
				}
				box.RegisterHandlers(i, workers)
				box.Start()
				box.PostUserMessage("go")
				workers.run()
				for _, m := range test.after {
					box.PostSystemMessage(m)
					workers.run()
				}
				if diff := cmp.Diff(append([]string{"user go"}, test.want...), i.handled); diff != "" {
					t.Errorf("handled (-want +got):\n%s", diff)
				}
				if n := len(workers.jobs); n != 0 {
					t.Errorf("%d jobs left", n)
				}
			})
		}
	}
}

// TestMailboxSuspendedWakesNobody shows that messages for a suspended actor are kept, and counted, without a job.
func TestMailboxSuspendedWakesNobody(t *testing.T) {
	t.Parallel()
	box, workers, i := actors.NewMailbox(never), &byHand{}, &invoker{}
	box.RegisterHandlers(i, workers)
	box.PostSystemMessage(&actor.SuspendMailbox{})
	workers.run()
	box.PostUserMessage(1)
	box.PostUserMessage(2)
	if n := workers.run(); n != 0 {
		t.Errorf("%d jobs for a suspended actor", n)
	}
	if n := box.UserMessageCount(); n != 2 {
		t.Errorf("%d messages kept, want 2", n)
	}
}

// TestMailboxPlace shows who runs the actor: the poster where that is allowed, else a worker; once for all that was posted
// until it got to run.
func TestMailboxPlace(t *testing.T) {
	t.Parallel()
	box, workers, i := actors.NewMailbox(func(m any) bool { return m == "inline" }), &byHand{}, &invoker{}
	box.RegisterHandlers(i, workers)
	box.PostUserMessage("inline")
	if len(i.handled) != 1 || len(workers.jobs) != 0 {
		t.Errorf("after an inline message: handled %q, %d jobs", i.handled, len(workers.jobs))
	}
	box.PostUserMessage("other")
	box.PostUserMessage("inline")
	box.PostSystemMessage("other")
	if len(i.handled) != 1 || len(workers.jobs) != 1 {
		t.Errorf("after another message: handled %q, %d jobs", i.handled, len(workers.jobs))
	}
	workers.run()
	if diff := cmp.Diff([]string{"user inline", "system other", "user other", "user inline"}, i.handled); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
}

// TestInlineMessages holds fast whose goroutine may run a connection's actor: its reader's, nobody else's.
func TestInlineMessages(t *testing.T) {
	t.Parallel()
	for _, m := range actors.FromReaderMessages() {
		if !actors.FromReader(m) {
			t.Errorf("%T is handed to a worker", m)
		}
	}
	for _, m := range actors.FromOthers() {
		if actors.FromReader(m) {
			t.Errorf("%T is run where it is posted", m)
		}
	}
}

// TestMailboxTurn shows that a goroutine which runs an actor for its own message handles only so many of others.
func TestMailboxTurn(t *testing.T) {
	t.Parallel()
	box, workers, i := actors.NewMailbox(actors.Always), &byHand{}, &invoker{}
	const messages = 3*actors.Turn - 1
	i.on = func(message any) {
		if message == 1 { // the others, while this one is handled
			for n := 2; n <= messages; n++ {
				box.PostUserMessage(n)
			}
		}
	}
	box.RegisterHandlers(i, workers)
	box.PostUserMessage(1)
	for _, want := range []int{actors.Turn, 2 * actors.Turn, messages} {
		if len(i.handled) != want {
			t.Errorf("handled %d messages, want %d", len(i.handled), want)
		}
		if n := box.UserMessageCount(); n != messages-want {
			t.Errorf("%d messages left, want %d", n, messages-want)
		}
		workers.run()
	}
	for n, got := range i.handled {
		if want := fmt.Sprint("user ", n+1); got != want {
			t.Fatalf("message %d is %q, want %q", n, got, want)
		}
	}
}

// TestMailboxNeverEmpty shows that a mailbox whose actor always lags behind a little does not grow by what was handled.
func TestMailboxNeverEmpty(t *testing.T) {
	t.Parallel()
	box, workers, i := actors.NewMailbox(never), &byHand{}, &invoker{}
	left, room := 20_000, 0
	i.on = func(any) {
		i.handled = i.handled[:0]
		if left--; left > 0 {
			box.PostUserMessage(left)
			room = max(room, box.Room())
		}
	}
	box.RegisterHandlers(i, workers)
	for range 3 {
		box.PostUserMessage("one too many")
	}
	for workers.run() > 0 {
	}
	if left > 0 {
		t.Errorf("%d messages were not handled", left)
	}
	if room > 4*actors.Turn {
		t.Errorf("room for %d messages where there were never more than 4", room)
	}
}

// TestMailboxUnderLoad has thousands post at once: nothing is lost, run twice, or run at the same time as anything else,
// and everybody's messages stay in order.
func TestMailboxUnderLoad(t *testing.T) {
	t.Parallel()
	const posters, each = 2000, 20
	type note struct{ poster, number int }
	workers := actors.NewWorkers()
	defer workers.Close()
	for name, inline := range map[string]func(any) bool{
		"always": actors.Always,
		"never":  never,
		"some":   func(m any) bool { return m.(note).poster%2 == 0 },
	} {
		var done sync.WaitGroup
		done.Add(posters * each)
		next := make([]int, posters) // not guarded: the race detector sees who runs at the same time
		box := actors.NewMailbox(inline)
		box.RegisterHandlers(&quiet{on: func(m any) {
			n := m.(note)
			if next[n.poster] != n.number {
				t.Errorf("%s: message %d of poster %d came as number %d", name, n.number, n.poster, next[n.poster])
			}
			next[n.poster]++
			done.Done()
		}}, workers)
		var all sync.WaitGroup
		for p := range posters {
			all.Go(func() {
				for n := range each {
					if p%100 == 0 {
						box.PostSystemMessage(note{p, n})
					} else {
						box.PostUserMessage(note{p, n})
					}
				}
			})
		}
		all.Wait()
		done.Wait()
		for p, n := range next {
			if n != each {
				t.Errorf("%s: %d messages of poster %d, want %d", name, n, p, each)
			}
		}
	}
}

// TestMailboxGathers shows that released answers do not run their actor before the poster says so, and that any other message
// does not wait for that.
func TestMailboxGathers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		workers := actors.NewWorkers()
		handled := make(chan any, 3)
		box := actors.NewMailbox(never)
		box.RegisterHandlers(&quiet{on: func(m any) { handled <- m }}, workers)
		box.PostUserMessage(actors.Released())
		synctest.Wait()
		if len(handled) != 0 {
			t.Error("handled before the word")
		}
		workers.RunGathered()
		<-handled
		box.PostUserMessage("other")
		<-handled
		synctest.Wait()
		workers.Close()
	})
}
