package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cluster/bus"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
)

// preflight returns the states of the promises that are not kept, and why quorum would be refused.
func preflight(t *testing.T, url string, key *access.HostKey, replicas int) (map[string]string, cluster.Promises) {
	t.Helper()
	conn, js := dial(t, url, key)
	all := testkit.Value(cluster.Preflight(testkit.Context(t), conn, js, "alpha", replicas))(t)
	found := map[string]string{}
	for _, p := range all {
		if p.State != cluster.Kept {
			found[p.Name] = p.State
		}
		if (p.State == cluster.Kept) != (p.Found == "") {
			t.Errorf("%+v", p)
		}
	}
	return found, all
}

func differ(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	same := len(got) == len(want)
	for name, state := range want {
		same = same && got[name] == state
	}
	if !same {
		t.Errorf("%s: not kept are %v, want %v", what, got, want)
	}
}

// pwos-bus keeps everything. A kernel that asks for more replicas than its stream has is told so.
func TestPreflight(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	b := testbus.Start(t, line)
	_, js := dial(t, b.URL(), key)
	for _, what := range []string{"no stream", "a stream"} {
		found, all := preflight(t, b.URL(), key, 1)
		differ(t, what, found, map[string]string{})
		testkit.Must(t, all.Refusal(false))
		testkit.Must(t, cluster.AskToMake(testkit.Context(t), js, "stream", "alpha", 1))
	}
	found, all := preflight(t, b.URL(), key, 3)
	differ(t, "three replicas", found, map[string]string{"replicas": cluster.Broken})
	if all.Refusal(true) == nil {
		t.Error("a stream with one replica is enough for a quorum of three")
	}
}

// A NATS server does not say whether it syncs, which counts as "not kept". Its other faults are found.
func TestPreflightOfServer(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	for name, c := range map[string]struct {
		with   func(*server.Options)
		stream func(*jetstream.StreamConfig) // nil: there is none
		want   map[string]string
	}{
		"syncs":          {func(o *server.Options) { o.SyncAlways = true }, nil, map[string]string{"sync": cluster.Unstated, "links": cluster.Unstated}},
		"small messages": {func(o *server.Options) { o.MaxPayload = 64 << 10 }, nil, map[string]string{"sync": cluster.Unstated, "links": cluster.Unstated, "max_payload": cluster.Broken}},
		"a stream in memory": {
			func(o *server.Options) {}, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
			map[string]string{"sync": cluster.Unstated, "links": cluster.Unstated, "stream": cluster.Broken},
		},
		"a stream that forgets, and that may be deleted from": {
			func(o *server.Options) {}, func(c *jetstream.StreamConfig) { c.MaxAge, c.DenyDelete = time.Hour, false },
			map[string]string{"sync": cluster.Unstated, "links": cluster.Unstated, "stream": cluster.Broken, "stream_closed": cluster.Broken},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := testkit.Value(bus.Settings{Listen: "127.0.0.1:0", Dir: testkit.Dir(t), Members: access.ParseMembers([]byte(line), time.UTC)}.Options())(t)
			o.SyncAlways, o.JetStreamMaxMemory = false, 1<<20
			for _, user := range o.Nkeys {
				user.Permissions = nil
			}
			c.with(o)
			srv := testkit.Value(server.NewServer(o))(t)
			srv.Start()
			t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
			if !srv.ReadyForConnections(testkit.Patience) {
				t.Fatal("the server does not listen")
			}
			if c.stream != nil {
				settings := cluster.StreamConfig("alpha", 1)
				c.stream(&settings)
				_, js := dial(t, srv.ClientURL(), key)
				testkit.Value(js.CreateStream(testkit.Context(t), settings))(t)
			}
			found, all := preflight(t, srv.ClientURL(), key, 1)
			differ(t, name, found, c.want)
			if all.Refusal(false) == nil {
				t.Error("quorum is not refused")
			}
			if err := all.Refusal(true); (err == nil) != (c.want["stream"] == "") {
				t.Errorf("with --accept-unsynced: %v", err)
			}
		})
	}
}
