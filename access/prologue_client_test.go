package access_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

const (
	prologueMessage = `{"kind":"command","type":"Syscall.Authenticate","data":{"scheme":"none"},"metadata":{"id":"1","timestamp":1}}` + "\n"
	prologueEvent   = `{"type":"command","name":"Syscall.Authenticate","payload":{"scheme":"none"}}` + "\n"
)

func TestClientAnswersInTheDaemonsDialect(t *testing.T) {
	t.Parallel()
	for input, dialect := range map[string]schema.Dialect{prologueMessage: schema.OsMessage, prologueEvent: schema.OsEvent} {
		link := newScript(schema.OsMessage, input)
		var offered string
		var at time.Time
		testkit.Must(t, access.Exchange(link, func(offer []byte, issued time.Time) ([]byte, error) {
			offered, at = string(offer), issued
			return []byte(`{"signature":"x"}`), nil
		}))
		if offered != `{"scheme":"none"}` {
			t.Errorf("offered %s", offered)
		}
		if first, _ := schema.Decode([]byte(strings.TrimSpace(input)), dialect); at.UnixMilli() != first.Meta.Timestamp {
			t.Errorf("issued at %v, the frame has %d", at, first.Meta.Timestamp)
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
		answer      access.AnswerFunc
		want        error
	}{
		{"closed at once", "", access.AnswerOpen, io.EOF},
		{"not JSON", "220 ESMTP\r\n", access.AnswerOpen, access.ErrNoPrologue},
		{"another frame", pingMessage, access.AnswerOpen, access.ErrNoPrologue},
		{"reply of the right type", replyMessage, access.AnswerOpen, access.ErrNoPrologue},
		{"endless line", strings.Repeat("x", 1<<20), access.AnswerOpen, access.ErrNoPrologue},
		{"no answer to give", prologueMessage, func([]byte, time.Time) ([]byte, error) { return nil, noKey }, noKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			link := newScript(schema.OsMessage, tt.input)
			if err := access.Exchange(link, tt.answer); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if link.said.Len() != 0 {
				t.Errorf("the client sent %s", link.said.String())
			}
		})
	}
}

// TestClientPrologueAndItsContext: the context ends the wait for a daemon that sends nothing; after
// the prologue the connection has no deadline.
func TestClientPrologueAndItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		defer near.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Second, cancel) // fake time
		if err := access.ClientPrologue(ctx, newPipe(near), access.AnswerOpen); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}
