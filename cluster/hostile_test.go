package cluster_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// A request names the subject of its answer. A sender must not make a kernel write to its own stream or lease, which only
// that kernel may do.
func TestAnswersGoToInboxes(t *testing.T) {
	t.Parallel()
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	mallory, lineOfMallory := testbus.Key(t, testkit.Dir(t), "mallory", "")
	b := testbus.Start(t, lineOfBeta, lineOfMallory)
	_, receiver := linked(t, b, "beta", beta, lineOfBeta+"\n")
	owner := join(t, b, "beta", beta)
	owner.makes(t, "stream", "beta")
	stream := testkit.Value(owner.js.Stream(testkit.Context(t), cluster.Stream("beta")))(t)
	forger := join(t, b, "mallory", mallory)
	request := nats.NewMsg(cluster.RequestSubject("beta"))
	request.Data = []byte(`{"from":"mallory","to":"beta","session":"","number":0,"instance":"","epoch":0}`)
	for _, reply := range []string{cluster.JournalSubject("beta"), cluster.LeaseSubject("beta"), cluster.RequestSubject("mallory"), ""} {
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
		t.Errorf("a client that is no member gets %s", reply.Data)
	}
	if info := testkit.Value(stream.Info(testkit.Context(t)))(t); info.State.LastSeq != 0 {
		t.Errorf("beta has written %d messages to its stream", info.State.LastSeq)
	}
}

// TestNoJSON shows that a kernel refuses requests and answers that are not JSON, and keeps running. Requests are decoded before
// their signatures are checked.
func TestNoJSON(t *testing.T) {
	t.Parallel()
	alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", "")
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	b := testbus.Start(t, lineOfAlpha, lineOfBeta)
	texts := []string{"", "{", `{"from":"be`, `{"from":"beta","to"`, "{]", "\x00", strings.Repeat("[", 100_000), `{"from":"beta","from":"beta"}`}
	hostile := join(t, b, "beta", beta)
	handleRequests(t, hostile.conn, "beta", func(m *nats.Msg) { reply(t, beta, m, "{") })
	from, sender := linked(t, b, "alpha", alpha, lineOfAlpha+"\n"+lineOfBeta+"\n")
	for _, text := range texts {
		m := nats.NewMsg(cluster.RequestSubject("alpha"))
		m.Data, m.Reply = []byte(text), hostile.conn.NewInbox()
		testkit.Must(t, hostile.conn.PublishMsg(m))
	}
	from.Link().Post(letter(1, `1`))
	if status, _, err := from.Link().Wait(testkit.Context(t), 1); err != nil || status != schema.MailQueued {
		t.Errorf("status %s, %v", status, err)
	}
	testkit.Eventually(t, "alpha refuses requests and answers", func() bool {
		sender.mu.Lock()
		defer sender.mu.Unlock()
		return len(sender.refused) > len(texts)
	})
}

// Mirror refuses a stream that ends before the mirror does, or that is missing. The mirror stays unchanged, and continues
// when the entries are back.
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

// An outcome from another kernel is journaled only if it is valid, since a start would refuse the entry.
func TestHostileOutcomes(t *testing.T) {
	t.Parallel()
	alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", "")
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	b := testbus.Start(t, lineOfAlpha, lineOfBeta)
	liar := join(t, b, "beta", beta)
	handleRequests(t, liar.conn, "beta", func(m *nats.Msg) {
		reply(t, beta, m, `{"from":"beta","session":"s","number":0,"outcomes":[{"msg_id":1,"status":"TAKEN"},{"msg_id":2}]}`)
	})
	from, sender := linked(t, b, "alpha", alpha, lineOfAlpha+"\n"+lineOfBeta+"\n")
	for id := range int64(2) {
		from.Link().Post(letter(id+1, `1`))
	}
	var both sync.WaitGroup
	for id := range int64(2) {
		both.Go(func() {
			if status, _, err := from.Link().Wait(testkit.Context(t), id+1); err != nil || status != schema.MailQueued {
				t.Errorf("message %d: %s, %v", id+1, status, err)
			}
		})
	}
	both.Wait()
	sender.mu.Lock()
	defer sender.mu.Unlock()
	if len(sender.settled) != 0 || len(sender.refused) == 0 || sender.refused[0] != string(fault.ClusterRequest) {
		t.Errorf("settled %q, refused %q", sender.settled, sender.refused)
	}
}

// reply answers a request as a kernel does, signed by key.
func reply(t *testing.T, key *access.HostKey, request *nats.Msg, body string) {
	digest := sha256.Sum256(request.Data)
	signature, err := key.Sign([]byte("pwos answer 1\n" + string(digest[:]) + body))
	if err != nil {
		t.Error(err)
		return
	}
	m := nats.NewMsg(request.Reply)
	m.Data = []byte(body)
	m.Header.Set("Pwos-Signature", base64.StdEncoding.EncodeToString(signature))
	if err := request.RespondMsg(m); err != nil {
		t.Error(err)
	}
}

// A message that reaches the inbox of a request before the answer, and is not signed by the other kernel, is refused, and the answer is
// still awaited.
func TestForgedAnswerFirst(t *testing.T) {
	t.Parallel()
	alpha, lineOfAlpha := testbus.Key(t, testkit.Dir(t), "alpha", "")
	beta, lineOfBeta := testbus.Key(t, testkit.Dir(t), "beta", "")
	stranger, _ := testbus.Key(t, testkit.Dir(t), "stranger", "")
	b := testbus.Start(t, lineOfAlpha, lineOfBeta)
	respond := func(with func(*nats.Conn, *nats.Msg)) { // each connection may answer a request once
		conn := join(t, b, "beta", beta).conn
		handleRequests(t, conn, "beta", func(m *nats.Msg) { with(conn, m) })
	}
	forged := make(chan struct{}, 2)
	forge := func(by func(*nats.Msg)) {
		respond(func(conn *nats.Conn, m *nats.Msg) {
			by(m)
			if err := conn.Flush(); err != nil {
				t.Error(err)
			}
			forged <- struct{}{}
		})
	}
	forge(func(m *nats.Msg) {
		if err := m.Respond(nil); err != nil {
			t.Error(err)
		}
	})
	forge(func(m *nats.Msg) {
		reply(t, stranger, m, `{"from":"beta","session":"x","number":0,"outcomes":[{"msg_id":1,"status":"EXPIRED"}]}`)
	})
	respond(func(_ *nats.Conn, m *nats.Msg) {
		<-forged
		<-forged
		reply(t, beta, m, `{"from":"beta","session":"s","number":0,"outcomes":[{"msg_id":1,"status":"DELIVERED"}]}`)
	})
	from, sender := linked(t, b, "alpha", alpha, lineOfAlpha+"\n"+lineOfBeta+"\n")
	from.Link().Post(letter(1, `1`))
	if status, reason, err := from.Link().Wait(testkit.Context(t), 1); err != nil || status != schema.MailDelivered {
		t.Errorf("status %s, reason %s, %v", status, reason, err)
	}
	if want := string(fault.ClusterSigned); !sender.has(&sender.refused, want, want, want, want) { // of the session, and of the message
		t.Errorf("refused %q", sender.refused)
	}
}

// copiedBeside copies a short journal of alpha to a bus whose other member is beta.
func copiedBeside(t *testing.T) (b *testbus.Bus, s *scribe, c *cluster.Copy, alpha, beta *member) {
	t.Helper()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	other, otherLine := testbus.Key(t, testkit.Dir(t), "beta", "")
	b = testbus.Start(t, line, otherLine)
	s = newScribe(t, key)
	s.write(3, 10)
	alpha, beta = join(t, b, "alpha", key), join(t, b, "beta", other)
	c, _ = alpha.copy(t, s, "alpha")
	copied(t, c, s)
	return b, s, c, alpha, beta
}

// A kernel can neither write the stream of another kernel nor delete or change anything, and the bus refuses everyone who
// is no member.
func TestPermissions(t *testing.T) {
	t.Parallel()
	b, _, _, alpha, beta := copiedBeside(t)
	ctx, cancel := context.WithTimeout(testkit.Context(t), 2*time.Second)
	defer cancel()
	if _, err := beta.js.Publish(ctx, cluster.JournalSubject("alpha"), []byte("x")); err == nil {
		t.Error("beta wrote to alpha's stream")
	}
	for what, do := range map[string]func() error{
		"delete": func() error { return alpha.js.DeleteStream(ctx, cluster.Stream("alpha")) },
		"update": func() error {
			_, err := alpha.js.UpdateStream(ctx, jetstream.StreamConfig{Name: cluster.Stream("alpha"), Subjects: []string{"x"}})
			return err
		},
		"make": func() error {
			_, err := beta.js.CreateStream(ctx, jetstream.StreamConfig{Name: cluster.Stream("beta"), Subjects: []string{cluster.JournalSubject("gamma")}})
			return err
		},
		"have another's made": func() error {
			_, err := alpha.conn.RequestWithContext(ctx, cluster.MakeSubject("stream", "beta"), []byte("1"))
			return err
		},
		"make another's": func() error {
			_, err := alpha.js.CreateStream(ctx, jetstream.StreamConfig{Name: cluster.Stream("beta"), Subjects: []string{cluster.JournalSubject("beta")}})
			return err
		},
	} {
		if do() == nil {
			t.Errorf("a kernel may %s a stream", what)
		}
	}
	if r := verify(t, beta, "alpha", alpha.key.Key()); r.Finding != nil {
		t.Error(r.Finding)
	}
	stranger, _ := testbus.Key(t, testkit.Dir(t), "gamma", "")
	short, stop := context.WithTimeout(testkit.Context(t), time.Second)
	defer stop()
	if _, _, err := cluster.Dial(short, cluster.Options{Name: "gamma", Servers: b.URL(), Key: stranger, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "does not know the key") {
		t.Errorf("a client that is no member is admitted: %v", err)
	}
}

// forbidden waits until the bus has refused what a member published.
func (m *member) forbidden(t *testing.T, subject string) {
	t.Helper()
	testkit.Eventually(t, "a publication to "+subject+" is refused", func() bool {
		testkit.Must(t, m.conn.Flush())
		err := m.conn.LastError()
		return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), subject)
	})
}

// A kernel that answers a request may publish to the inboxes of members only. It can send one to itself that wants its answer elsewhere.
func TestAnswerToItself(t *testing.T) {
	t.Parallel()
	_, s, _, alpha, beta := copiedBeside(t)
	alpha.makes(t, "lease", "alpha")
	handleRequests(t, beta.conn, "beta", func(m *nats.Msg) {
		if err := m.Respond(m.Data); err != nil {
			t.Error(err)
		}
	})
	for _, one := range [][2]string{
		{"$JS.API.STREAM.DELETE." + cluster.Stream("alpha"), ""},
		{"$JS.API.STREAM.LEADER.STEPDOWN." + cluster.Stream("alpha"), ""},
		{cluster.LeaseSubject("alpha"), `{"key":"","epoch":9}`},
		{cluster.JournalSubject("alpha"), "{}"},
	} {
		testkit.Must(t, beta.conn.PublishRequest(cluster.RequestSubject("beta"), one[0], []byte(one[1])))
		beta.forbidden(t, one[0])
	}
	whole(t, alpha, s, "alpha")
	if lease, err := testkit.Value(alpha.js.KeyValue(testkit.Context(t), cluster.LeaseBucket("alpha")))(t).Get(testkit.Context(t), "leader"); err == nil {
		t.Errorf("alpha's lease is %q", lease.Value())
	}
}

// A member may have answers of the bus sent to the stream of another kernel. They stop neither its copy nor those who read it.
func TestAnswersInStream(t *testing.T) {
	t.Parallel()
	_, s, c, m, other := copiedBeside(t)
	other.makes(t, "stream", "beta")
	other.makes(t, "lease", "beta")
	stream := testkit.Value(m.js.Stream(testkit.Context(t), cluster.Stream("alpha")))(t)
	ends := func() uint64 { return testkit.Value(stream.Info(testkit.Context(t)))(t).State.LastSeq }
	for _, one := range [][3]string{
		{"$JS.API.INFO", ""},
		{"$JS.API.STREAM.MSG.GET.pwos-journal-alpha", `{"seq":1}`},
		{"$JS.API.STREAM.MSG.GET.pwos-journal-nothing", `{"seq":1}`},
		{cluster.JournalSubject("beta"), "x"},
		{cluster.LeaseSubject("beta"), "y"},
		{cluster.JournalSubject("beta"), "refused", "99"},
	} {
		before := ends()
		answered := nats.NewMsg(one[0])
		answered.Reply, answered.Data = cluster.JournalSubject("alpha"), []byte(one[1])
		if one[2] != "" {
			answered.Header.Set(jetstream.ExpectedLastSeqHeader, one[2])
		}
		testkit.Must(t, other.conn.PublishMsg(answered))
		testkit.Eventually(t, "the answer to "+one[0]+one[1]+" is in the stream", func() bool { return ends() > before })
		s.write(1, 10)
		copied(t, c, s)
		whole(t, m, s, "alpha")
	}
	// The answer to a direct read would be the message itself.
	read := "$JS.API.DIRECT.GET." + cluster.Stream("alpha")
	testkit.Must(t, other.conn.PublishRequest(read, other.conn.NewInbox(), []byte(`{"seq":1}`)))
	other.forbidden(t, read)
	last := testkit.Value(cluster.LastCheckpoint(testkit.Context(t), m.js, "alpha"))(t)
	if last == nil || last.Head != s.log.Head() {
		t.Errorf("the last checkpoint is %v", last)
	}
	testkit.Must(t, s.log.Close())
	dir := testkit.Dir(t)
	done := testkit.Value(cluster.Rejoin(testkit.Context(t), m.js, "alpha", []access.PublicKey{m.key.Key()}, dir))(t)
	if done.Fetched != s.log.Head().Seq {
		t.Errorf("another host fetches %d entries of %d", done.Fetched, s.log.Head().Seq)
	}
}
