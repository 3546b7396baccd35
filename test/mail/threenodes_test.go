package mail_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cluster/bus"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema"
)

// threeNodes runs three nodes of a bus with TLS, each in a process of its own.
func threeNodes(t *testing.T, a *authority, lines []string) (nodes []*busProcess) {
	t.Helper()
	for i := range 3 {
		ip := "127.78.0." + string(rune('1'+i))
		b := &busProcess{}
		b.Dir, b.Name, b.Listen, b.Peers = testkit.Dir(t), "n"+string(rune('1'+i)), freePort(t, ip), freePort(t, ip)
		b.Cert, b.Key = a.issue(b.Name, ip, -time.Hour, time.Hour)
		nodes = append(nodes, b)
		streams := filepath.Join(b.Dir, "streams")
		testkit.Must(t, os.Mkdir(streams, 0o700))
		lines = append(lines, testkit.Value(bus.NodeLine(streams, b.Name))(t))
	}
	for _, b := range nodes {
		for _, other := range nodes {
			if other != b {
				b.Routes = append(b.Routes, "nats://"+other.Peers)
			}
		}
	}
	for _, b := range nodes {
		b.run(t, lines)
	}
	return nodes
}

func freePort(t *testing.T, host string) string {
	t.Helper()
	l := testkit.Value(net.Listen("tcp", net.JoinHostPort(host, "0")))(t)
	defer l.Close()
	return l.Addr().String()
}

// onBus calls do with a separate connection to a bus until it succeeds, since nodes answer no request while they elect a leader.
func onBus(t *testing.T, o cluster.Options, what string, do func(context.Context, cluster.Streams) error) {
	t.Helper()
	conn, js, err := cluster.Dial(testkit.Context(t), o)
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Eventually(t, what, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return do(ctx, js) == nil
	})
}

// TestThreeNodes: messages and processes go through a bus of three nodes with TLS, and the node that leads the
// sender's stream is killed, with PWOS_LONG=1 ten times: each message arrives once, in order. At the end the copies of both journals are
// complete, and the lease is held. Before each kill, the sender is connected to the node that leads its stream.
func TestThreeNodes(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*testkit.Patience)
	defer cancel()
	ca := newAuthority(t)
	alpha, beta := &node{name: "alpha"}, &node{name: "beta"}
	lines := []string{alpha.home(t, mayRun), beta.home(t, mayRun)}
	_, standby := testbus.Key(t, testkit.Dir(t), "alpha", "standby")
	lines = append(lines, standby)
	nodes := threeNodes(t, ca, lines)
	var urls []string
	for _, b := range nodes {
		urls = append(urls, "tls://"+b.Listen)
	}
	o := cluster.Options{
		Name: "alpha", Servers: strings.Join(urls, ","), Authority: ca.file, Log: slog.New(slog.DiscardHandler),
		Key: testkit.Value(access.OpenHostKey(alpha.place.StateDir()))(t),
	}
	onBus(t, o, "the nodes elect a leader", func(ctx context.Context, js cluster.Streams) error {
		_, err := js.AccountInfo(ctx)
		return err
	})
	for _, n := range []*node{alpha, beta} {
		n.know(lines...)
		n.bus = strings.Join(urls, ",")
		n.with = func(cfg *config.Config) {
			cfg.Cluster.Authority, cfg.Cluster.Acknowledge, cfg.Cluster.Replicas = ca.file, config.Quorum, len(nodes)
		}
		n.start()
	}
	w := &writer{pid: spawnAt(ctx, t, alpha, "writer"), statuses: map[string]int{}}
	reader, seen := spawnAt(ctx, t, beta, "reader"), map[int64]int{}
	rounds, children := 1, 0
	if os.Getenv("PWOS_LONG") != "" {
		rounds = 10
	}
	for range rounds {
		var victim *busProcess
		onBus(t, o, "the stream of alpha has a leader", func(ctx context.Context, js cluster.Streams) error {
			stream, err := js.Stream(ctx, cluster.Stream("alpha"))
			if err != nil {
				return err
			}
			at := slices.IndexFunc(nodes, func(b *busProcess) bool { return b.Name == stream.CachedInfo().Cluster.Leader })
			if at < 0 {
				return errors.New("no node leads the stream")
			}
			victim = nodes[at]
			return nil
		})
		testkit.Eventually(t, "alpha is connected to the node that leads its stream", func() bool { return alpha.status().Node == victim.Name })
		begun, written := make(chan struct{}), make(chan error, 1)
		go func() {
			err := w.write(ctx, alpha, reader, 5)
			close(begun)
			if err == nil {
				err = w.write(ctx, alpha, reader, 20)
			}
			written <- err
		}()
		testkit.Receive(t, begun, "the first messages")
		victim.kill(t)
		for range 2 {
			testkit.Value(spawnAndEnd(ctx, alpha, fmt.Sprint("child-", children), children%2 == 0))(t)
			children++
		}
		testkit.Must(t, testkit.Receive(t, written, "all messages"))
		testkit.Must(t, read(ctx, beta, reader, []*writer{w}, seen))
		victim.start(t)
	}
	if more := testkit.Value(receive(ctx, beta, reader))(t); len(more) > 0 {
		t.Errorf("%d messages arrived twice: %+v", len(more), more)
	}
	there := 0
	for _, p := range testkit.Value(client.Call(ctx, beta.Client, schema.ProcessList, &schema.ProcessListInput{}))(t).Processes {
		if strings.HasPrefix(p.AgentID, "kernel-alpha/") {
			there++
		}
	}
	if there != children {
		t.Errorf("%d processes at beta, %d calls", there, children)
	}
	for _, n := range []*node{alpha, beta} {
		testkit.Eventually(t, "the journal of "+n.name+" is copied", func() bool {
			s := n.status()
			return s.Connected && s.Alarm == "" && s.Behind <= 1 // the entry of the last question
		})
		key := testkit.Value(access.OpenHostKey(n.place.StateDir()))(t).Key()
		onBus(t, o, "the copy of "+n.name+" is whole", func(ctx context.Context, js cluster.Streams) error {
			_, err := cluster.Verify(ctx, js, n.name, []access.PublicKey{key}, nil)
			return err
		})
	}
	testkit.Eventually(t, "the lease is held", func() bool { return alpha.status().Lease == "held" })
	t.Logf("%d messages, %v; %d processes", w.next, w.statuses, children)
}
