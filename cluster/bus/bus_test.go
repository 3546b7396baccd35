package bus_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cluster/bus"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// settings returns those of a bus with one valid member, alpha, and alpha's key. The line of another member has expired.
func settings(t *testing.T) (bus.Settings, *access.HostKey) {
	t.Helper()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	_, expired := testbus.Key(t, testkit.Dir(t), "gone", `expiry-time="20200101"`)
	members := access.ParseMembers([]byte(line+"\n"+expired+"\n"), time.UTC)
	return bus.Settings{Listen: "127.0.0.1:0", Dir: testkit.Dir(t), Members: members, MaxBytes: 1 << 20}, key
}

// The options sync each write, admit members only, and bound the disk space.
func TestOptions(t *testing.T) {
	t.Parallel()
	s, _ := settings(t)
	o := testkit.Value(s.Options())(t)
	if !o.SyncAlways || !o.JetStream || o.JetStreamMaxStore != 1<<20 {
		t.Errorf("SyncAlways %v, JetStream %v, at most %d bytes", o.SyncAlways, o.JetStream, o.JetStreamMaxStore)
	}
	if len(o.Nkeys) != 1 || o.NoAuthUser != "" || len(o.Users) > 0 {
		t.Errorf("users: %d keys, %q, %v", len(o.Nkeys), o.NoAuthUser, o.Users)
	}
	s.Name, s.Peers, s.Routes = "n1", "127.0.0.1:6222", []string{"127.0.0.1:6223", "nats://127.0.0.1:6224"}
	s.Members = access.ParseMembers([]byte(testkit.Value(bus.NodeLine(s.Dir, "n1"))(t)), time.UTC)
	o = testkit.Value(s.Options())(t)
	if len(o.Routes) != 2 || o.Cluster.Port != 6222 || o.ServerName != "n1" {
		t.Errorf("routes %v, port %d, name %q", o.Routes, o.Cluster.Port, o.ServerName)
	}
	if c := o.Cluster; c.TLSConfig == nil || c.TLSConfig.ClientAuth != tls.RequireAnyClientCert || c.TLSConfig.VerifyConnection == nil || len(c.TLSPinnedCerts) != 1 {
		t.Errorf("links between nodes: %+v, pinned %v", c.TLSConfig, c.TLSPinnedCerts)
	}
	for _, wrong := range []bus.Settings{
		{Listen: "nowhere", Members: s.Members},
		{Listen: "h:70000", Members: s.Members},
		{Listen: "h:1", Name: "n", Peers: "x", Members: s.Members},
		{Listen: "h:1", Name: "n1", Peers: "h:2", Routes: []string{"h"}, Dir: s.Dir, Members: s.Members},
		{Listen: "h:1", Cert: "not-there", Key: "not-there", Members: s.Members},
	} {
		if o, err := wrong.Options(); err == nil {
			t.Errorf("%+v is accepted: %+v", wrong, o)
		}
	}
}

// A second node in the directory of one that runs is refused; after the end of the first it starts.
func TestDirectoryInUse(t *testing.T) {
	t.Parallel()
	s, _ := settings(t)
	log := slog.New(slog.DiscardHandler)
	first := testkit.Value(bus.Start(s, log))(t)
	second, err := bus.Start(s, log)
	if err == nil {
		second.Close()
	}
	first.Close()
	if err == nil || !strings.Contains(err.Error(), "another bus uses the directory "+s.Dir) {
		t.Errorf("a second node: %v", err)
	}
	testkit.Value(bus.Start(s, log))(t).Close()
}

// A NATS server that is configured by hand is a bus too: with the users that pwos-bus prints.
func TestExistingServer(t *testing.T) {
	t.Parallel()
	s, key := settings(t)
	users := testkit.Value(bus.Users(s.Members))(t)
	file := testkit.Dir(t) + "/nats.conf"
	testkit.WriteFile(t, file, "listen: \"127.0.0.1:-1\"\njetstream {\n  store_dir: \""+s.Dir+"\"\n  sync_interval: always\n}\n"+users)
	o := testkit.Value(server.ProcessConfigFile(file))(t)
	own := testkit.Value(s.Options())(t)
	if o.SyncAlways != own.SyncAlways {
		t.Errorf("sync always: %v", o.SyncAlways)
	}
	for i, user := range own.Nkeys {
		// Without pwos-bus, kernels make their streams.
		for _, stream := range []string{"pwos-journal-alpha", "KV_pwos-lease-alpha"} {
			user.Permissions.Publish.Allow = append(user.Permissions.Publish.Allow, "$JS.API.STREAM.CREATE."+stream, "$JS.API.STREAM.UPDATE."+stream)
		}
		if diff := cmp.Diff(user.Permissions, o.Nkeys[i].Permissions); diff != "" || user.Nkey != o.Nkeys[i].Nkey {
			t.Errorf("permissions of %s, not %s (-pwos-bus +file):\n%s", o.Nkeys[i].Nkey, user.Nkey, diff)
		}
	}
	o.NoLog, o.NoSigs = true, true
	srv := testkit.Value(server.NewServer(o))(t)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(testkit.Patience) {
		t.Fatal("the server does not listen")
	}
	_, js := dial(t, srv.ClientURL(), key)
	testkit.Must(t, cluster.AskToMake(testkit.Context(t), js, "stream", "alpha", 1))
	stream := testkit.Value(js.Stream(testkit.Context(t), cluster.Stream("alpha")))(t)
	if subjects := stream.CachedInfo().Config.Subjects; !slices.Equal(subjects, []string{cluster.JournalSubject("alpha")}) {
		t.Errorf("the stream has %v", subjects)
	}
	// An earlier build made the stream with other settings: the kernel changes it.
	older := cluster.StreamConfig("alpha", 1)
	older.AllowDirect, older.MaxMsgSize = true, -1
	testkit.Value(js.UpdateStream(testkit.Context(t), older))(t)
	testkit.Must(t, cluster.AskToMake(testkit.Context(t), js, "stream", "alpha", 1))
	if c := testkit.Value(js.Stream(testkit.Context(t), cluster.Stream("alpha")))(t).CachedInfo().Config; c.AllowDirect || c.MaxMsgSize < 0 {
		t.Errorf("the stream allows direct reads: %v, and messages of %d bytes", c.AllowDirect, c.MaxMsgSize)
	}
}

func dial(t *testing.T, url string, key *access.HostKey) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	conn, js, err := cluster.Dial(testkit.Context(t), cluster.Options{Name: "alpha", Servers: url, Key: key, Log: slog.New(slog.DiscardHandler)})
	testkit.Must(t, err)
	t.Cleanup(conn.Close)
	return conn, js
}

// started returns a node of the bus, and a connection of alpha to it.
func started(t *testing.T, s bus.Settings, key *access.HostKey) (*bus.Node, *nats.Conn, jetstream.JetStream) {
	t.Helper()
	n := testkit.Value(bus.Start(s, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(n.Close)
	conn, js := dial(t, n.URL(), key)
	return n, conn, js
}

// A kernel cannot choose the settings of its stream or lease. With others it could take the subject of another kernel's stream, or have the
// bus publish to it.
func TestStreamsOfMembers(t *testing.T) {
	t.Parallel()
	s, key := settings(t)
	n, conn, js := started(t, s, key)
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for name, c := range map[string]jetstream.StreamConfig{
		"the subject of another kernel": {Subjects: []string{cluster.JournalSubject("beta")}},
		"published again":               {Subjects: []string{cluster.JournalSubject("alpha")}, RePublish: &jetstream.RePublish{Source: cluster.JournalSubject("alpha"), Destination: cluster.JournalSubject("beta")}},
		"its own":                       cluster.StreamConfig("alpha", 1),
	} {
		c.Name = cluster.Stream("alpha")
		if _, err := js.CreateStream(short, c); err == nil {
			t.Errorf("%s: a kernel makes a stream", name)
		}
		if _, err := js.UpdateStream(short, c); err == nil {
			t.Errorf("%s: a kernel changes a stream", name)
		}
	}
	// An answer to somewhere else is none: it would be a message in another stream.
	testkit.Must(t, conn.PublishRequest(cluster.MakeSubject("stream", "alpha"), cluster.JournalSubject("beta"), []byte("1")))
	for _, wrong := range []string{"", "0", "6", "1,", "{}"} {
		reply := testkit.Value(conn.RequestWithContext(testkit.Context(t), cluster.MakeSubject("stream", "alpha"), []byte(wrong)))(t)
		if len(reply.Data) == 0 {
			t.Errorf("%q replicas are accepted", wrong)
		}
	}
	if _, err := js.Stream(testkit.Context(t), cluster.Stream("alpha")); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream: %v", err)
	}
	for range 2 { // the second time it is there
		for _, what := range []string{"stream", "lease"} {
			testkit.Must(t, cluster.AskToMake(testkit.Context(t), js, what, "alpha", 1))
		}
	}
	got := testkit.Value(js.Stream(testkit.Context(t), cluster.Stream("alpha")))(t).CachedInfo().Config
	if !slices.Equal(got.Subjects, []string{cluster.JournalSubject("alpha")}) || got.RePublish != nil || !got.DenyDelete || !got.DenyPurge {
		t.Errorf("the stream has %+v", got)
	}
	testkit.Value(js.KeyValue(testkit.Context(t), cluster.LeaseBucket("alpha")))(t)
	testkit.Must(t, n.Reload(s))
	testkit.Must(t, cluster.AskToMake(testkit.Context(t), js, "stream", "alpha", 1))
}

// Streams of an earlier build allow direct reads, whose answer is the message as it was stored: a member could have it sent anywhere,
// also to the interface of JetStream. A kernel has the bus switch them off before it uses its stream or lease.
func TestDirectReads(t *testing.T) {
	t.Parallel()
	for name, bounded := range map[string]bool{"of any size": false, "of a bounded size": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			directReads(t, bounded)
		})
	}
}

func directReads(t *testing.T, bounded bool) {
	t.Helper()
	s, key := settings(t)
	old := testkit.Value(server.NewServer(&server.Options{Port: -1, Host: "127.0.0.1", NoSigs: true, NoLog: true, JetStream: true, StoreDir: s.Dir, NoSystemAccount: true}))(t)
	old.Start()
	if !old.ReadyForConnections(testkit.Patience) {
		t.Fatal("the server does not listen")
	}
	conn := testkit.Value(nats.Connect(old.ClientURL()))(t)
	admin := testkit.Value(jetstream.New(conn))(t)
	made := []jetstream.StreamConfig{cluster.StreamConfig("alpha", 1), cluster.LeaseConfig("alpha", 1)}
	for _, c := range made {
		if c.AllowDirect = true; !bounded {
			c.MaxMsgSize = -1
		}
		testkit.Value(admin.CreateStream(testkit.Context(t), c))(t)
	}
	conn.Close()
	old.Shutdown()
	old.WaitForShutdown()

	_, _, js := started(t, s, key)
	o := cluster.LeaseOptions{Kernel: "alpha", Replicas: 1, Term: time.Minute, Clock: cluster.BootClock}
	testkit.Must(t, cluster.NewLease(js, o, "first", 1, cluster.Seen{}, func() bool { return true }).Renew(testkit.Context(t)))
	testkit.Must(t, cluster.AskToMake(testkit.Context(t), js, "stream", "alpha", 1))
	for _, want := range made {
		got := testkit.Value(js.Stream(testkit.Context(t), want.Name))(t).CachedInfo().Config
		if got.AllowDirect || got.MaxMsgSize != want.MaxMsgSize {
			t.Errorf("%s allows direct reads: %v, and messages of %d bytes", got.Name, got.AllowDirect, got.MaxMsgSize)
		}
	}
}

// A member whose line is removed loses its connection at the reload, and does not get it back.
func TestRemovedMember(t *testing.T) {
	t.Parallel()
	s, key := settings(t)
	n, conn, _ := started(t, s, key)
	s.Members = access.ParseMembers(nil, time.UTC)
	testkit.Must(t, n.Reload(s))
	testkit.Eventually(t, "the bus refuses it", func() bool {
		return !conn.IsConnected() && errors.Is(conn.LastError(), nats.ErrAuthorization)
	})
}

// Settings of a stream: it drops nothing by itself, and as many nodes as are asked for have it.
func TestStream(t *testing.T) {
	t.Parallel()
	c := cluster.StreamConfig("alpha", 3)
	if c.Replicas != 3 || !c.DenyDelete || !c.DenyPurge || c.MaxBytes != -1 || c.MaxMsgs != -1 || c.MaxAge != 0 {
		t.Errorf("%+v", c)
	}
	// The bus bounds what members publish, and not its own answers.
	if lease := cluster.LeaseConfig("alpha", 3); c.MaxMsgSize != 1<<20 || lease.MaxMsgSize != 1<<10 || c.AllowDirect || lease.AllowDirect {
		t.Errorf("%+v, %+v", c, lease)
	}
}
