package bus

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/promptware-os/pwos/cluster"
)

// makeTime is the time limit for creating a stream. It is shorter than that of the kernel's request, which so gets the error.
const makeTime = 4 * time.Second

// maker creates the streams of members. It is a user of the bus that may do anything; its key is in this process only.
type maker struct {
	user string
	key  nkeys.KeyPair
	conn *nats.Conn
	js   jetstream.JetStream
	log  *slog.Logger

	statement cluster.Statement // of this node
}

func newMaker(log *slog.Logger) (*maker, error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("make key of the bus: %w", err)
	}
	user, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("make key of the bus: %w", err)
	}
	return &maker{user: user, key: key, log: log}, nil
}

// start serves requests until close.
func (m *maker) start(srv *server.Server) (err error) {
	m.statement = cluster.Statement{Node: srv.Name(), Syncs: srv.JetStreamConfig().SyncAlways}
	if srv.ClusterAddr() != nil {
		m.statement.Links = cluster.KeyedLinks
	}
	if m.conn, err = nats.Connect("", nats.InProcessServer(srv), nats.Nkey(m.user, m.key.Sign), nats.MaxReconnects(-1)); err != nil {
		return fmt.Errorf("connect to the bus: %w", err)
	}
	if m.js, err = jetstream.New(m.conn); err != nil {
		return fmt.Errorf("use the bus: %w", err)
	}
	if _, err = m.conn.Subscribe(cluster.StatementSubject(), m.state); err != nil {
		return fmt.Errorf("take requests for statements: %w", err)
	}
	if _, err = m.conn.QueueSubscribe(cluster.MakeSubject("*", "*"), "pwos-bus", m.make); err != nil {
		return fmt.Errorf("take requests for streams: %w", err)
	}
	return m.conn.Flush()
}

// state answers a request for the statement of this node.
func (m *maker) state(request *nats.Msg) {
	_, kernel := cluster.MakeOf(request.Subject)
	if !strings.HasPrefix(request.Reply, cluster.InboxPrefix(kernel)+".") {
		return
	}
	if err := request.RespondMsg(&nats.Msg{Header: m.statement.Headers()}); err != nil {
		m.log.Warn("request for a statement not answered", "kernel", kernel, "error", err)
	}
}

func (m *maker) close() {
	if m.conn != nil {
		m.conn.Close()
	}
}

// make answers a request: with an empty message, or with an error. It answers to inboxes of the kernel only, since this user may publish
// to all streams.
func (m *maker) make(request *nats.Msg) {
	what, kernel := cluster.MakeOf(request.Subject)
	if cluster.IsStatement(what) {
		return // each node answers for itself
	}
	if !strings.HasPrefix(request.Reply, cluster.InboxPrefix(kernel)+".") {
		m.log.Warn("request for a stream refused: its answer is not for an inbox of the kernel", "kernel", kernel)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), makeTime)
	defer cancel()
	text := ""
	if err := cluster.Make(ctx, m.js, what, kernel, request.Data); err != nil {
		text = err.Error()
	}
	if err := request.Respond([]byte(text)); err != nil {
		m.log.Warn("request for a stream not answered", "kernel", kernel, "error", err)
	}
}
