package testbus

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster/bus"
	"github.com/promptware-os/pwos/internal/testkit"
)

// StartNATS runs a NATS server as an operator may configure one for these members: it does not sync each write, and is not pwos-bus. It
// returns its address.
func StartNATS(t testing.TB, listen string, members ...string) string {
	t.Helper()
	s := bus.Settings{Listen: listen, Dir: testkit.Dir(t), Members: access.ParseMembers([]byte(strings.Join(members, "\n")), time.UTC)}
	o := testkit.Value(s.Options())(t)
	o.SyncAlways = false
	for _, user := range o.Nkeys {
		user.Permissions = nil
	}
	srv := testkit.Value(server.NewServer(o))(t)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(testkit.Patience) {
		t.Fatal("the server does not listen")
	}
	return srv.ClientURL()
}
