package cluster_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema/fault"
)

// A request chooses where its answer goes. Whoever may send one must not have a kernel write to its own stream or lease, as only
// that kernel may.
func TestAnswersGoToInboxes(t *testing.T) {
	t.Parallel()
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	mallory, lineOfMallory := testbus.Key(t, testkit.Dir(t), "mallory", "")
	b := testbus.Start(t, lineOfBeta, lineOfMallory)
	_, receiver := linked(t, b, "beta", beta, lineOfBeta+"\n")
	owner := join(t, b, "beta", beta)
	stream := testkit.Value(owner.js.CreateStream(testkit.Context(t), cluster.StreamConfig("beta", 1)))(t)
	forger := join(t, b, "mallory", mallory)
	request := nats.NewMsg(cluster.RequestSubject("beta"))
	request.Data = []byte(`{"from":"mallory","to":"beta","session":"","number":0,"instance":"","epoch":0}`)
	for _, reply := range []string{cluster.JournalSubject("beta"), "$KV." + cluster.LeaseBucket("beta") + ".leader", cluster.RequestSubject("mallory"), ""} {
		m := *request
		m.Reply = reply
		testkit.Must(t, forger.conn.PublishMsg(&m))
	}
	testkit.Eventually(t, "beta has refused them", func() bool {
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		return len(receiver.refused) == 4
	})
	if reply := testkit.Value(forger.conn.RequestMsgWithContext(testkit.Context(t), request))(t); !strings.Contains(string(reply.Data), string(fault.ClusterNoKernel)) {
		t.Errorf("a stranger gets %s", reply.Data)
	}
	if info := testkit.Value(stream.Info(testkit.Context(t)))(t); info.State.LastSeq != 0 {
		t.Errorf("beta has written %d messages to its stream", info.State.LastSeq)
	}
}

// A stream that ends before the mirror's end, or is gone, is found out. The mirror stays as it is, and goes on when the entries are back.
func TestMirrorOfShorterStream(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	s := newScribe(t, key)
	dir := filepath.Join(testkit.Dir(t), "mirror")
	mirror := func(m *member) *cluster.Report {
		t.Helper()
		return testkit.Value(cluster.Mirror(testkit.Context(t), m.js, "alpha", []access.PublicKey{key.Key()}, dir))(t)
	}
	s.write(5, 10)
	older := join(t, testbus.Start(t, line), "alpha", key)
	c, stop := older.copy(t, s, "alpha")
	copied(t, c, s)
	stop()
	s.write(5, 10)
	m := join(t, testbus.Start(t, line), "alpha", key)
	c, _ = m.copy(t, s, "alpha")
	copied(t, c, s)
	if r := mirror(m); r.Finding != nil || r.Head != s.log.Head() {
		t.Fatal(r.Head, r.Finding)
	}
	for name, on := range map[string]*member{"an older copy": older, "no stream": join(t, testbus.Start(t, line), "alpha", key)} {
		if r := mirror(on); r.Finding == nil || !strings.Contains(r.Finding.Error(), "this mirror has entries up to 10") {
			t.Errorf("%s: found %v", name, r.Finding)
		}
	}
	c, _ = older.copy(t, s, "alpha")
	copied(t, c, s)
	if r := mirror(older); r.Finding != nil || r.Head != s.log.Head() {
		t.Error(r.Head, r.Finding)
	}
}
