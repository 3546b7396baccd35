package cluster_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

// booted returns the entry of a kernel's start.
func booted(epoch int, key *access.HostKey) string {
	return note("Kernel.Booted", fmt.Sprintf(`{"instance":"one","epoch":%d,"host_key":%q}`, epoch, key.Public()))
}

// takesOver returns the entry that begins the epoch of another host.
func takesOver(epoch int, key *access.HostKey) string {
	return note("Kernel.TakeOver", fmt.Sprintf(`{"epoch":%d,"host_key":%q,"epochs":[{"epoch":%d,"first_seq":1}]}`, epoch, key.Public(), epoch))
}

func note(typ, data string) string {
	return `{"kind":"command","type":"` + typ + `","data":` + data + `,"metadata":{"id":"x","timestamp":1}}`
}

// other is an entry that does not name a leader.
const other = `"x"`

// put appends entries to the journal, and to the stream as one message that a key signs.
func (s *scribe) put(m *member, key *access.HostKey, requests ...string) {
	s.t.Helper()
	msg := nats.NewMsg(cluster.JournalSubject("alpha"))
	for _, request := range requests {
		s.log.Append(&journal.Entry{Time: 1, Request: []byte(request), Outcome: []byte(`{"kind":"reply","data":{}}`)})
		testkit.Must(s.t, s.log.Flush())
		_, err := s.log.Sync()
		testkit.Must(s.t, err)
		r := journal.NewReader(nil, s.dir, journal.ReaderOptions{From: s.log.Synced()})
		msg.Data = append(append(msg.Data, testkit.Value(r.Next(s.t.Context()))(s.t).Line...), '\n')
		testkit.Must(s.t, r.Close())
	}
	checkpoint := s.checkpoint(key, s.log.Head())
	msg.Header.Set("Pwos-Checkpoint", string(checkpoint.AppendLine(nil)))
	_, err := m.js.PublishMsg(testkit.Context(s.t), msg)
	testkit.Must(s.t, err)
}

// hosts are two hosts of the kernel alpha, and a stranger who can only reach the bus.
type hosts struct{ first, second, stranger *access.HostKey }

// TestLeaders shows which streams of a kernel that several hosts have led are accepted, by Verify and by a standby that
// copies them.
func TestLeaders(t *testing.T) {
	t.Parallel()
	type message struct {
		key     *access.HostKey
		entries []string
	}
	for name, test := range map[string]struct {
		stream func(h hosts) []message
		listed func(h hosts) []*access.HostKey // nil: both hosts
		want   string                          // "": it is accepted
	}{
		"one leader": {stream: func(h hosts) []message {
			return []message{{h.first, []string{booted(1, h.first), other}}, {h.first, []string{other}}}
		}},
		"a take-over, and back": {stream: func(h hosts) []message {
			return []message{
				{h.first, []string{booted(1, h.first), other}},
				{h.second, []string{takesOver(2, h.second)}},
				{h.second, []string{booted(2, h.second), other}},
				{h.first, []string{takesOver(3, h.first), booted(3, h.first)}},
			}
		}},
		"the first host is listed no more": {
			stream: func(h hosts) []message {
				return []message{{h.first, []string{booted(1, h.first)}}, {h.second, []string{takesOver(2, h.second)}}}
			},
			listed: func(h hosts) []*access.HostKey { return []*access.HostKey{h.second} },
		},
		"a restored kernel sends what its copy had not been sent": {stream: func(h hosts) []message {
			return []message{{h.first, []string{booted(1, h.first)}}, {h.second, []string{other}}, {h.second, []string{booted(2, h.second)}}}
		}},
		"the second host is not listed": {
			stream: func(h hosts) []message {
				return []message{{h.first, []string{booted(1, h.first)}}, {h.second, []string{takesOver(2, h.second)}}}
			},
			listed: func(h hosts) []*access.HostKey { return []*access.HostKey{h.first} },
			want:   "are not signed by a key of the kernel alpha",
		},
		"a stranger takes over": {
			stream: func(h hosts) []message {
				return []message{{h.first, []string{booted(1, h.first)}}, {h.stranger, []string{takesOver(2, h.stranger), other}}}
			},
			want: "are not signed by a key of the kernel alpha",
		},
		"a stranger has a host take over": {
			stream: func(h hosts) []message {
				return []message{{h.first, []string{booted(1, h.first)}}, {h.stranger, []string{takesOver(2, h.second)}}}
			},
			want: "which no entry names for the epoch 2",
		},
		"a host that does not say that it takes over": {
			stream: func(h hosts) []message {
				return []message{{h.first, []string{booted(1, h.first)}}, {h.second, []string{other}}}
			},
			want: "which no entry names for the epoch 1",
		},
		"a stranger before what a restored kernel's copy had not been sent": {
			stream: func(h hosts) []message {
				return []message{
					{h.first, []string{booted(1, h.first)}},
					{h.stranger, []string{other}},
					{h.second, []string{other}},
					{h.second, []string{booted(2, h.second)}},
				}
			},
			want: "which no entry names for the epoch 1",
		},
		"a host that says so too late": {
			stream: func(h hosts) []message {
				return []message{{h.first, []string{booted(1, h.first)}}, {h.second, []string{other}}, {h.second, []string{takesOver(2, h.second)}}}
			},
			want: "which no entry names for the epoch 1",
		},
		"the first host goes on": {
			stream: func(h hosts) []message {
				return []message{{h.first, []string{booted(1, h.first)}}, {h.second, []string{takesOver(2, h.second)}}, {h.first, []string{other}}, {h.second, []string{other}}}
			},
			want: "which no entry names for the epoch 2",
		},
		"the same epoch again": {
			stream: func(h hosts) []message {
				return []message{{h.first, []string{booted(2, h.first)}}, {h.second, []string{takesOver(2, h.second)}}}
			},
			want: "names a host key for the epoch 2, which entry 1 had begun",
		},
		"an earlier epoch": {
			stream: func(h hosts) []message {
				return []message{{h.first, []string{booted(1, h.first)}}, {h.second, []string{takesOver(2, h.second)}}, {h.first, []string{booted(1, h.first)}}}
			},
			want: "names a host key for the epoch 1, which entry 2 had begun",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h hosts
			var line string
			h.first, line = testbus.Key(t, testkit.Dir(t), "alpha", "")
			second, standby := testbus.Key(t, testkit.Dir(t), "alpha", "standby")
			h.second = second
			h.stranger, _ = testbus.Key(t, testkit.Dir(t), "alpha", "")
			m := join(t, testbus.Start(t, line, standby), "alpha", h.second)
			s := newScribe(t, h.first)
			m.makes(t, "stream", "alpha")
			for _, one := range test.stream(h) {
				s.put(m, one.key, one.entries...)
			}
			listed := []*access.HostKey{h.first, h.second}
			if test.listed != nil {
				listed = test.listed(h)
			}
			var keys []access.PublicKey
			for _, key := range listed {
				keys = append(keys, key.Key())
			}
			r := verify(t, m, "alpha", keys...)
			here := newScribe(t, h.second)
			testkit.Must(t, here.log.Close())
			_, err := cluster.Rejoin(testkit.Context(t), m.js, "alpha", keys, here.dir)
			here.open()
			if test.want == "" {
				if r.Finding != nil || err != nil || here.log.Head() != s.log.Head() {
					t.Errorf("found %v; the standby: %v, up to %v", r.Finding, err, here.log.Head())
				}
				return
			}
			if r.Finding == nil || !strings.Contains(r.Finding.Error(), test.want) {
				t.Errorf("found %v, want %q", r.Finding, test.want)
			}
			if err == nil || here.log.Head().Seq != 0 {
				t.Errorf("the standby copies the stream: %v, up to %v", err, here.log.Head())
			}
		})
	}
}

// TestLead shows that a take-over fails if the leader appends meanwhile, and that the old leader stops after one that
// succeeds.
func TestLead(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	second, standby := testbus.Key(t, testkit.Dir(t), "alpha", "standby")
	b := testbus.Start(t, line, standby)
	m, other := join(t, b, "alpha", key), join(t, b, "alpha", second)
	keys := []access.PublicKey{key.Key(), second.Key()}
	leads := newScribe(t, key)
	leads.write(5, 10)
	c, _ := m.copy(t, leads, "alpha")
	copied(t, c, leads)

	here := newScribe(t, second)
	take := func(before func()) error {
		testkit.Must(t, here.log.Close())
		_, err := cluster.Rejoin(testkit.Context(t), other.js, "alpha", keys, here.dir)
		here.open()
		testkit.Must(t, err)
		before()
		here.write(1, 30)
		return cluster.Lead(testkit.Context(t), "alpha", second, here.source(), 1, other.conn)
	}
	err := take(func() {
		leads.write(1, 10)
		copied(t, c, leads)
	})
	if !errors.Is(err, fault.ClusterFenced) {
		t.Errorf("take over: %v", err)
	}
	testkit.Must(t, take(func() {}))
	leads.write(1, 10)
	testkit.Eventually(t, "the leader stops", func() bool { return c.Progress().Alarm != "" })
	if last := testkit.Value(cluster.LastKey(testkit.Context(t), m.js, "alpha"))(t); last != second.Key().String() {
		t.Errorf("the stream ends with an entry of %s", last)
	}
}

// TestIdleLeader shows that a kernel that answers from its own disk, and has nothing to copy, stops once another host leads.
func TestIdleLeader(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	second, standby := testbus.Key(t, testkit.Dir(t), "alpha", "standby")
	b := testbus.Start(t, line, standby)
	members := filepath.Join(testkit.Dir(t), "members")
	testkit.WriteFile(t, members, line+"\n"+standby+"\n")
	leads := newScribe(t, key)
	leads.write(5, 10)
	n := testkit.Value(cluster.Start(cluster.NodeOptions{
		Options: cluster.Options{Name: "alpha", Servers: b.URL(), Key: key, Log: quiet},
		Members: members, Journal: leads.source(), Replicas: 1,
	}))(t)
	t.Cleanup(func() { testkit.Must(t, n.Close()) })
	fenced := make(chan error, 1)
	n.Begin(&cluster.Quorum{Fenced: func(err error) { fenced <- err }})
	testkit.Eventually(t, "the journal is copied", func() bool { return n.Copied(t.Context(), 0) == leads.log.Synced() })

	other, here := join(t, b, "alpha", second), newScribe(t, second)
	testkit.Must(t, here.log.Close())
	testkit.Value(cluster.Rejoin(testkit.Context(t), other.js, "alpha", []access.PublicKey{key.Key()}, here.dir))(t)
	here.open()
	here.write(1, 30)
	testkit.Must(t, cluster.Lead(testkit.Context(t), "alpha", second, here.source(), 1, other.conn))
	if err := testkit.Receive(t, fenced, "the end of the host that led"); !strings.Contains(err.Error(), "another host leads this kernel") {
		t.Error(err)
	}
}
