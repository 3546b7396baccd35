package actors_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
)

// post is a kernel with the real mailboxes, of which process 7 has one.
type post struct {
	*system
	boxes *ipc.Domain
}

func startPost(t *testing.T) *post {
	t.Helper()
	boxes := ipc.New(ipc.Options{})
	domains := newRecorders().domains()
	domains[schema.Ipc] = boxes
	p := &post{startWith(t, domains), boxes}
	p.kernel.Recover([]schema.Request{schema.IPCOpen.With(&schema.MailboxInput{PIDs: []int64{7}})})
	synctest.Wait()
	return p
}

// check ends the kernel, and compares the mailboxes with those that the next start would build from the journal. Nothing
// may be left of the connections, all of which have ended.
func (p *post) check(t *testing.T) {
	t.Helper()
	p.endCleanly()
	fresh := ipc.New(ipc.Options{})
	if err := p.restore(schema.Ipc, fresh); err != nil {
		t.Fatalf("replay: %v", err)
	}
	if live, replayed := chunks(t, p.boxes), chunks(t, fresh); !bytes.Equal(live, replayed) {
		t.Errorf("live\n%s\nreplayed\n%s", live, replayed)
	}
	if left := fresh.Abandoned(); left != nil {
		t.Errorf("connections have left %+v", left)
	}
}

func chunks(t *testing.T, d kernel.Domain) (all []byte) {
	t.Helper()
	if err := d.Snapshot()(func(chunk []byte) error {
		all = append(all, chunk...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// count returns how many entries of the type the journal has.
func (p *post) count(typ string) (n int) {
	for _, e := range p.entries() {
		if e.Type == typ {
			n++
		}
	}
	return n
}

func subscribe(id, more string) string {
	return command(id, "Ipc.Subscribe", `{"pid":7`+more+`}`)
}

// payloads returns the payloads of pushed messages, or of an answer that shows them.
func payloads(list []answer) (all string) {
	for _, a := range list {
		for _, part := range strings.Split(string(a.Data), `"payload":`)[1:] {
			all += part[:strings.IndexByte(part, ',')] + " "
		}
	}
	return all
}

// TestFollowerIsWritten shows that a message is pushed when it is sent, after the entry that took it out of the mailbox,
// and that both entries share one sync, so that a follower waits no longer than a sender.
func TestFollowerIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPost(t)
		follower, sender := p.connect(), p.connect()
		follower.send(subscribe("s", ""))
		expect(t, follower, `s {"receiver_pid":7,"ack":false}`)
		sender.send(sendMsg("a", "1"), sendMsg("b", "2"))
		sender.take(2)
		synctest.Wait()
		got := follower.pending()
		if len(got) != 2 || payloads(got) != "1 2 " || got[0].Meta.Causation != "a" || got[1].Meta.Causation != "b" || got[0].Kind != schema.KindEvent {
			t.Errorf("pushed %v", got)
		}
		p.check(t)
	})
}

// TestUnwrittenPushes has a follower whose link takes little: the mailbox gives no more than one push until earlier pushes
// are written.
func TestUnwrittenPushes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPost(t)
		follower, sender := p.serve(newLink(schema.OsMessage, schema.MaxLine, 300)), p.connect()
		follower.send(subscribe("s", ""))
		want := ""
		for n := range 50 {
			want += fmt.Sprint(n) + " "
			sender.send(sendMsg("a", fmt.Sprint(n)))
			sender.next()
		}
		synctest.Wait()
		if n := p.count("Ipc.Deliver"); n > 2 {
			t.Errorf("%d deliveries to a peer that does not read", n)
		}
		follower.next()
		if got := payloads(follower.take(50)); got != want {
			t.Errorf("pushed %s", got)
		}
		p.check(t)
	})
}

// TestManyFollow starts and ends connections while messages are sent: each message is received once by one of them, or is
// in the mailbox at the end, except for those in flight to a connection that has ended.
func TestManyFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := startPost(t)
		sender := p.connect()
		got := make(map[string]int)
		note := func(list []answer) {
			for _, a := range list {
				if a.Type == "Ipc.MessageDelivered" {
					got[a.Meta.Causation]++
				}
			}
		}
		const rounds, each = 20, 5
		for round := range rounds {
			c := p.connect()
			c.send(subscribe("s", `,"ack":true`))
			for n := range each {
				sender.send(sendMsg(fmt.Sprint(round, "-", n), "1"))
			}
			if round%2 == 0 {
				synctest.Wait()
			}
			c.endInput()
			list := c.rest()
			note(list)
			var ids []string
			for _, a := range list {
				if a.Type == "Ipc.MessageDelivered" {
					id, _, _ := strings.Cut(strings.TrimPrefix(string(a.Data), `{"msg_id":`), ",")
					ids = append(ids, id)
				}
			}
			sender.take(each)
			if len(ids) > 0 {
				sender.send(command("k", "Ipc.Ack", `{"pid":7,"msg_ids":[`+strings.Join(ids, ",")+`]}`))
				sender.next()
			}
		}
		sender.send(receive("r", `"pid":7,"max":1000`))
		last := sender.next()
		left := strings.Count(string(last.Data), `"msg_id"`)
		for id, n := range got {
			if n != 1 {
				t.Errorf("%s was received %d times", id, n)
			}
		}
		if len(got)+left != rounds*each {
			t.Errorf("%d received, %d left in the mailbox, %d sent", len(got), left, rounds*each)
		}
		p.check(t)
	})
}
