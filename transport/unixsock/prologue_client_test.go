package unixsock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestClientAnswersInTheDaemonsDialect(t *testing.T) {
	t.Parallel()
	for input, dialect := range map[string]schema.Dialect{prologueMessage: schema.OsMessage, prologueEvent: schema.OsEvent} {
		link := newScript(schema.OsMessage, input)
		var offered string
		var at time.Time
		must(t, unixsock.Exchange(link, func(offer []byte, issued time.Time) ([]byte, error) {
			offered, at = string(offer), issued
			return []byte(`{"signature":"x"}`), nil
		}))
		if offered != `{"scheme":"none"}` {
			t.Errorf("offered %s", offered)
		}
		if first, _ := schema.Decode([]byte(strings.TrimSpace(input)), dialect); at.UnixMilli() != first.Meta.Timestamp {
			t.Errorf("it was issued at %v, the frame says %d", at, first.Meta.Timestamp)
		}
		said := link.frames(t)
		if m := said[0]; len(said) != 1 || m.Dialect != dialect || m.Kind != schema.KindReply ||
			m.Type != "Syscall.Authenticate" || string(m.Data) != `{"signature":"x"}` || !m.Meta.Present {
			t.Errorf("answered %s", link.said.String())
		}
	}
}

func TestClientTalksToKernelsOnly(t *testing.T) {
	t.Parallel()
	noKey := errors.New("no key")
	tests := []struct {
		name, input string
		answer      unixsock.AnswerFunc
		want        error
	}{
		{"closed at once", "", unixsock.AnswerOpen, io.EOF},
		{"not JSON", "220 ESMTP\r\n", unixsock.AnswerOpen, unixsock.ErrNoPrologue},
		{"another frame", pingMessage, unixsock.AnswerOpen, unixsock.ErrNoPrologue},
		{"reply of the right type", replyMessage, unixsock.AnswerOpen, unixsock.ErrNoPrologue},
		{"endless line", strings.Repeat("x", 1<<20), unixsock.AnswerOpen, unixsock.ErrNoPrologue},
		{"no answer to give", prologueMessage, func([]byte, time.Time) ([]byte, error) { return nil, noKey }, noKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			link := newScript(schema.OsMessage, tt.input)
			if err := unixsock.Exchange(link, tt.answer); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if link.said.Len() != 0 {
				t.Errorf("said %s", link.said.String())
			}
		})
	}
}

// The context ends a wait for a daemon that says nothing; a connection that got its prologue has no deadline left.
func TestClientPrologueAndItsContext(t *testing.T) {
	t.Parallel()
	path := privatePlaces(t).KernelSocket
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	serveRaw(t, path, func(conn net.Conn) {
		cancel()
		waitEOF(conn)
	})
	nc, conn := dialConn(t, path)
	defer nc.Close()
	if err := unixsock.ClientPrologue(ctx, conn, unixsock.AnswerOpen); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// dialConn dials path, in the canonical dialect.
func dialConn(t testing.TB, path string) (*net.UnixConn, *unixsock.Conn) {
	t.Helper()
	nc, err := unixsock.Dial(t.Context(), path)
	must(t, err)
	conn, err := unixsock.NewConn(nc, schema.OsMessage, schema.MaxLine)
	must(t, err)
	return nc, conn
}
