package actors_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// longReads is a domain with one query, which takes as long as the test wants for a long key.
type longReads struct {
	kernel.Stateless
	end   chan error
	ended chan error
}

func (s *longReads) Decide(call *kernel.Call) (kernel.Result, error) {
	done := kernel.Result{Data: []byte(`{"done":true}`)}
	if !bytes.Contains(call.Message.Data, []byte("long")) {
		return done, nil
	}
	return kernel.Result{Read: func(ctx context.Context) (kernel.Result, error) {
		select {
		case err := <-s.end:
			if errors.Is(err, io.ErrUnexpectedEOF) {
				panic("lost")
			}
			return done, err
		case <-ctx.Done():
			s.ended <- ctx.Err()
			return kernel.Result{}, ctx.Err()
		}
	}}, nil
}

func (*longReads) Apply(*kernel.Call) {}

// TestReadingHoldsUpNobody: a call whose answer is computed outside of its domain's actor is answered when that is done,
// before later calls of its connection; calls of others are answered immediately. Its failures affect no other call, and it
// ends when its caller disconnects.
func TestReadingHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &longReads{end: make(chan error), ended: make(chan error, 1)}
		domains := mount(newFake())
		domains[schema.Crypto] = slow
		s := startWith(t, domains)
		a, b := s.connect(), s.connect()
		ask := func(id, what string) string { return query(id, "Crypto.Derive", `{"kid":"`+what+`"}`) }
		for _, tt := range []struct {
			err  error
			want string
		}{
			{nil, "reply"}, {fault.MemoryNotFound.New("none"), "404"}, {io.ErrUnexpectedEOF, "500"}, {errors.New("oops"), "500"}, {syscall.EMFILE, "503"},
		} {
			a.send(ask("a", "long"), ping("behind", "1"))
			b.send(ask("b", "short"))
			if got := b.next(); got.Meta.Causation != "b" || got.Kind != schema.KindReply {
				t.Fatalf("%v: a call of another connection meanwhile: %s", tt.err, got)
			}
			expectNothing(t, a)
			slow.end <- tt.err
			got, behind := a.next(), a.next()
			if got.Meta.Causation != "a" || !strings.Contains(fmt.Sprint(got.Kind, string(got.Data)), tt.want) || behind.Meta.Causation != "behind" {
				t.Errorf("%v: %s %s, then %s; want %s", tt.err, got, got.Data, behind, tt.want)
			}
		}
		a.send(ask("a", "long"))
		synctest.Wait()
		_ = a.link.Close()
		if err := <-slow.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		b.send(ask("b", "short"))
		if got := b.next(); got.Kind != schema.KindReply {
			t.Errorf("a call after that: %s", got)
		}
	})
}
