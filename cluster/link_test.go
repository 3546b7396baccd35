package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// recorder is a kernel that accepts every message, and records what its journal would have.
type recorder struct {
	mu       sync.Mutex
	accepted []string
	numbers  []int64                                          // of the accepted messages
	refused  []string                                         // ids
	settled  []string                                         // statuses, or ids
	ran      []string                                         // names of processes that were spawned
	answer   string                                           // to queries
	judge    func(in *schema.AcceptInput, waits func()) error // of each message; nil: all are accepted
	taken    bool                                             // every message was taken before
	signers  []string                                         // fingerprints of the keys that signed accepted messages
}

func (r *recorder) Run(_ context.Context, _ *cluster.Requester, _ string, _ int64, e *schema.Errand) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = append(r.ran, e.Spawn.ChildAgentID)
	return fmt.Appendf(nil, `{"child_pid":%d,"child_agent_id":"x"}`, len(r.ran)), nil
}

func (r *recorder) Ask(context.Context, *cluster.Requester, string, []byte) ([]byte, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []byte(r.answer), 7, nil
}

func (r *recorder) EndIntent(uint64, []byte, *fault.Fault) {}

// judges sets the outcomes of messages, and whether they were taken before.
func (r *recorder) judges(taken bool, judge func(in *schema.AcceptInput, waits func()) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken, r.judge = taken, judge
}

func (r *recorder) Taken(_ context.Context, in *schema.TakenInput) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken || slices.Contains(r.numbers, in.MsgID), nil
}

func (r *recorder) Accept(_ context.Context, from *cluster.Requester, in *schema.AcceptInput, waits func()) (*schema.AcceptOutput, error) {
	r.mu.Lock()
	judge := r.judge
	r.mu.Unlock()
	if judge != nil {
		if err := judge(in, waits); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbers = append(r.numbers, in.MsgID)
	r.accepted, r.signers = append(r.accepted, string(in.Payload)), append(r.signers, from.Signer.Fingerprint())
	return &schema.AcceptOutput{Status: schema.MailDelivered, MsgID: int64(len(r.accepted))}, nil
}

func (r *recorder) Note(request schema.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch in := request.Input.(type) {
	case *schema.RefusedInput:
		r.refused = append(r.refused, in.ErrorID)
	case *schema.SettleInput:
		r.settled = append(r.settled, in.Status)
	}
}

func (r *recorder) Tick() int64 { return 0 }

func (r *recorder) OpenVariables(env map[string]string) (map[string]string, error) { return env, nil }

func (r *recorder) has(list *[]string, want ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Equal(*list, want)
}

// linked starts a node of a cluster for a recorder.
func linked(t *testing.T, b *testbus.Bus, name string, key *access.HostKey, members string) (*cluster.Node, *recorder) {
	t.Helper()
	file := filepath.Join(testkit.Dir(t), "members")
	testkit.WriteFile(t, file, members)
	testkit.Must(t, os.Chmod(file, 0o600))
	s := newScribe(t, key)
	n := testkit.Value(cluster.Start(cluster.NodeOptions{
		Options: cluster.Options{Name: name, Servers: b.URL(), Key: key, Log: slog.New(slog.DiscardHandler)},
		Members: file, Journal: s.source(), Replicas: 1,
	}))(t)
	t.Cleanup(func() { testkit.Must(t, n.Close()) })
	testkit.Eventually(t, name+" reaches the bus", func() bool { return n.Status().Connected })
	r := new(recorder)
	testkit.Must(t, n.Serve(r, "instance of "+name, 1, cluster.Left{}))
	return n, r
}

func letter(id int64, payload string) *schema.Letter {
	return &schema.Letter{Posted: schema.Posted{MsgID: id, ReceiverPID: 1, Payload: schema.Value(payload)}, Kernel: "beta"}
}

// delivered sends a letter to beta. It is queued at first where the bus does not know yet that beta listens.
func delivered(t *testing.T, from *cluster.Node, sender *recorder) {
	t.Helper()
	from.Link().Post(letter(1, `"first"`))
	if status, reason, err := from.Link().Wait(testkit.Context(t), 1); err != nil || status != schema.MailDelivered && status != schema.MailQueued {
		t.Fatal(status, reason, err)
	}
	testkit.Eventually(t, "the sender has settled it", func() bool { return sender.has(&sender.settled, schema.MailDelivered) })
}

// A request that is repeated, changed, for another kernel, or signed with another key is refused, and the refusal is
// journaled. Only a member can publish to a kernel on the bus, so a member does it here.
func TestForgedRequests(t *testing.T) {
	t.Parallel()
	keyOf := func(name string) (*access.HostKey, string) {
		return testbus.Key(t, testkit.Dir(t), name, `allow="Syscall.SendMsg"`)
	}
	alpha, lineOfAlpha := keyOf("alpha")
	beta, lineOfBeta := keyOf("beta")
	mallory, lineOfMallory := keyOf("mallory")
	b := testbus.Start(t, lineOfAlpha, lineOfBeta, lineOfMallory)
	members := strings.Join([]string{lineOfAlpha, lineOfBeta, lineOfMallory}, "\n") + "\n"
	// tap receives alpha's requests to beta in place of beta.
	tap := testkit.Value(nats.Connect(b.URL(), userOf(t, beta), nats.CustomInboxPrefix(cluster.InboxPrefix("beta"))))(t)
	t.Cleanup(tap.Close)
	seen := make(chan *nats.Msg, 16)
	testkit.Value(tap.Subscribe(cluster.RequestSubject("beta"), func(m *nats.Msg) { seen <- m }))(t)
	testkit.Must(t, tap.Flush())

	_, receiver := linked(t, b, "beta", beta, members)
	from, sender := linked(t, b, "alpha", alpha, members)
	delivered(t, from, sender)
	var request *nats.Msg
	for request == nil || !strings.Contains(string(request.Data), "first") {
		request = testkit.Receive(t, seen, "alpha's request")
	}

	from.Link().Begin(&schema.Errand{Number: 1, Kernel: "beta", Spawn: &schema.SpawnInput{ChildAgentID: "child"}})
	if data, err, _ := from.Link().Outcome(testkit.Context(t), 1, 1); err != nil || string(data) != `{"child_pid":1,"child_agent_id":"x","kernel":"beta"}` {
		t.Fatalf("%s, %v", data, err)
	}
	var call *nats.Msg
	for call == nil || !strings.Contains(string(call.Data), `"child"`) {
		call = testkit.Receive(t, seen, "alpha's call")
	}

	forger := testkit.Value(nats.Connect(b.URL(), userOf(t, mallory), nats.CustomInboxPrefix(cluster.InboxPrefix("mallory"))))(t)
	t.Cleanup(forger.Close)
	send := func(request *nats.Msg, change func(m *nats.Msg)) string {
		t.Helper()
		m := nats.NewMsg(cluster.RequestSubject("beta"))
		m.Data, m.Header = slices.Clone(request.Data), nats.Header{"Pwos-Signature": request.Header["Pwos-Signature"]}
		change(m)
		reply := testkit.Value(forger.RequestMsgWithContext(testkit.Context(t), m))(t)
		var out struct {
			Error struct {
				ID string `json:"id"`
			} `json:"error"`
		}
		testkit.Must(t, json.Unmarshal(reply.Data, &out))
		return out.Error.ID
	}
	body := func(old, now string) func(m *nats.Msg) {
		return func(m *nats.Msg) { m.Data = []byte(strings.Replace(string(m.Data), old, now, 1)) }
	}
	var want []string
	for _, test := range []struct {
		name   string
		change func(m *nats.Msg)
		id     fault.ID
	}{
		{"repeated", func(*nats.Msg) {}, fault.ClusterReplayed},
		{"changed", body(`"first"`, `"other"`), fault.ClusterSigned},
		{"a later number", body(`"number":1`, `"number":9`), fault.ClusterSigned},
		{"without a signature", func(m *nats.Msg) { m.Header = nil }, fault.ClusterSigned},
		{"signed by another member", body(`"from":"alpha"`, `"from":"mallory"`), fault.ClusterSigned},
		{"of no member", body(`"from":"alpha"`, `"from":"gamma"`), fault.ClusterNoKernel},
		{"for another kernel", body(`"to":"beta"`, `"to":"gamma"`), fault.ClusterRequest},
	} {
		if got := send(request, test.change); got != string(test.id) {
			t.Errorf("%s: %q, want %s", test.name, got, test.id)
		}
		want = append(want, string(test.id))
	}
	if !receiver.has(&receiver.refused, want...) || !receiver.has(&receiver.accepted, `"first"`) {
		t.Errorf("beta has recorded %q and accepted %q", receiver.refused, receiver.accepted)
	}
	for name, test := range map[string]struct {
		change func(m *nats.Msg)
		id     fault.ID
	}{
		"a call repeated":                 {func(*nats.Msg) {}, fault.ClusterReplayed},
		"a call changed":                  {body(`"child"`, `"other"`), fault.ClusterSigned},
		"a call signed by another member": {body(`"from":"alpha"`, `"from":"mallory"`), fault.ClusterSigned},
	} {
		if got := send(call, test.change); got != string(test.id) {
			t.Errorf("%s: %q, want %s", name, got, test.id)
		}
	}
	if !receiver.has(&receiver.ran, "child") {
		t.Errorf("beta has spawned %q", receiver.ran)
	}
}

// A kernel that its standby leads signs requests with the standby's key. The receiver gets that key instead of the key of
// the line.
func TestSignedByStandby(t *testing.T) {
	t.Parallel()
	_, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", `allow="Syscall.SendMsg"`)
	standby, lineOfStandby := testbus.Key(t, testkit.Dir(t), "alpha", "standby")
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	b := testbus.Start(t, lineOfAlpha, lineOfStandby, lineOfBeta)
	members := strings.Join([]string{lineOfAlpha, lineOfStandby, lineOfBeta}, "\n") + "\n"
	_, receiver := linked(t, b, "beta", beta, members)
	from, sender := linked(t, b, "alpha", standby, members)
	delivered(t, from, sender)
	if want := standby.Key().Fingerprint(); !receiver.has(&receiver.signers, want) {
		t.Errorf("signed by %q, want %s", receiver.signers, want)
	}
}

// An answer that the other kernel did not sign settles nothing, and its refusal is journaled.
func TestForgedAnswer(t *testing.T) {
	t.Parallel()
	alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", `allow="Syscall.SendMsg"`)
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", `allow="Syscall.SendMsg"`)
	b := testbus.Start(t, lineOfAlpha, lineOfBeta)
	liar := testkit.Value(nats.Connect(b.URL(), userOf(t, beta)))(t)
	t.Cleanup(liar.Close)
	handleRequests(t, liar, "beta", func(m *nats.Msg) {
		if err := m.Respond([]byte(`{"from":"beta","session":"s","number":0,"outcomes":[{"msg_id":1,"status":"DELIVERED"}]}`)); err != nil {
			t.Error(err)
		}
	})
	from, sender := linked(t, b, "alpha", alpha, lineOfAlpha+"\n"+lineOfBeta+"\n")
	from.Link().Post(letter(1, `1`))
	if status, _, err := from.Link().Wait(testkit.Context(t), 1); err != nil || status != schema.MailQueued {
		t.Errorf("%s, %v", status, err)
	}
	sender.mu.Lock()
	defer sender.mu.Unlock()
	if len(sender.settled) != 0 || len(sender.refused) == 0 || sender.refused[0] != string(fault.ClusterSigned) {
		t.Errorf("settled %q, refused %q", sender.settled, sender.refused)
	}
}

// An invalid or too long answer to a query is refused; so is a query that no kernel answers.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", "")
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	b := testbus.Start(t, lineOfAlpha, lineOfBeta)
	members := lineOfAlpha + "\n" + lineOfBeta + "\n"
	from, sender := linked(t, b, "alpha", alpha, members)
	_, receiver := linked(t, b, "beta", beta, members)
	receiver.mu.Lock()
	receiver.answer = `{"tick":5}`
	receiver.mu.Unlock()
	testkit.Eventually(t, "the bus knows that beta takes requests", func() bool {
		_, _, err := from.Ask(testkit.Context(t), "beta", "Clock.Get", []byte("{}"))
		return err == nil
	})
	for _, test := range []struct {
		typ, answer string
		id          fault.ID
	}{
		{"Clock.Get", `{"tick":5}`, ""},
		{"Clock.Get", `{"tick":"5"}`, fault.ClusterRequest},
		{"Clock.Get", `{"tick":5,"more":"\u001b[2J"}`, fault.ClusterRequest},
		{"Process.List", `{"processes":[{"pid":1}]}`, fault.ClusterRequest},
		{"Audit.Log", `{"entries":[],"x":"` + strings.Repeat("x", 1_000_000) + `"}`, fault.ClusterTooLarge},
		{"Memory.Get", `1`, fault.ClusterNotAsked},
		{"Process.Subscribe", `{}`, fault.ClusterNotAsked},
	} {
		receiver.mu.Lock()
		receiver.answer = test.answer
		receiver.mu.Unlock()
		data, seq, err := from.Ask(testkit.Context(t), "beta", test.typ, []byte("{}"))
		if test.id == "" && (err != nil || string(data) != test.answer || seq != 7) || test.id != "" && !errors.Is(err, test.id) {
			t.Errorf("%s %.40s: %s, %d, %v, want %q", test.typ, test.answer, data, seq, err, test.id)
		}
	}
	if got := len(sender.refused); got != 3 {
		t.Errorf("refused: %q", sender.refused)
	}
}

// userOf returns the user of the bus for a kernel's key.
func userOf(t *testing.T, key *access.HostKey) nats.Option {
	t.Helper()
	return nats.Nkey(testkit.Value(cluster.User(key.Key()))(t), key.Sign)
}
