package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// ErrNoPrologue says that the other end began with something other than Syscall.Authenticate: it is no kernel.
var ErrNoPrologue = errors.New("the other end does not speak the pwos prologue")

// ClientPrologue is the client's side of the exchange (BRIDGE 4.5.2): it reads the daemon's first frame, lets answer
// turn that frame's data, the offer, and the time in its metadata into the data of the reply, and sends it in the daemon's
// dialect. Nothing comes back for a good answer. The end of ctx interrupts it, but for answer.
//
// It returns an error that wraps ErrNoPrologue where the other end is no kernel, io.EOF where it closed first, so that a
// client may try again, or answer's own error.
func ClientPrologue(ctx context.Context, link Lines, answer AnswerFunc) error {
	stop := watch(ctx, link)
	err := exchange(link, answer)
	if stopErr := stop(); stopErr != nil {
		err = stopErr
	}
	if err != nil {
		return fmt.Errorf("connection prologue: %w", err)
	}
	return nil
}

// AnswerFunc makes the data of the reply to an offer that was issued at the given time.
type AnswerFunc = func(offer []byte, issued time.Time) ([]byte, error)

// AnswerOpen is the answer of a client that has no key to show: an empty object, whatever the offer.
func AnswerOpen([]byte, time.Time) ([]byte, error) { return []byte("{}"), nil }

// exchange reads the offer and sends the answer. The reply carries metadata although open mode does not ask for it: a
// daemon with keys does.
func exchange(link Lines, answer AnswerFunc) error {
	offer, err := readOffer(link)
	if err != nil {
		return err
	}
	data, err := answer(offer.Data, time.UnixMilli(offer.Meta.Timestamp))
	if err != nil {
		return err
	}
	reply := schema.Message{
		Dialect: offer.Dialect,
		Kind:    schema.KindReply,
		Type:    authenticate,
		Data:    data,
		Meta: schema.Metadata{
			Present:   true,
			ID:        schema.NewStamper().NewID(),
			Timestamp: time.Now().UnixMilli(),
			Causation: offer.Meta.ID,
		},
	}
	_, err = link.Write(schema.AppendMessage(nil, &reply))
	return err
}

// readOffer reads the first frame and returns it if it is a kernel's, in either dialect. Its data aliases link's
// buffer.
func readOffer(link Lines) (schema.Message, error) {
	line, err := link.Next()
	if errors.Is(err, schema.ErrLineTooLong) {
		return schema.Message{}, fmt.Errorf("%w: its first line is over %d bytes long", ErrNoPrologue, link.LineLimit())
	}
	if err != nil {
		return schema.Message{}, err
	}
	m, failure := schema.Decode(line, link.Dialect())
	switch {
	case failure != nil:
		return m, fmt.Errorf("%w: %w", ErrNoPrologue, failure)
	case m.Type != authenticate || m.Kind != schema.KindCommand:
		return m, fmt.Errorf("%w: it began with %s %s", ErrNoPrologue, m.Kind, m.Type)
	}
	return m, nil
}

// deadliner is what can be interrupted: a connection, as far as that goes.
type deadliner interface{ SetDeadline(t time.Time) error }

// watch lets the end of ctx interrupt whatever reads from or writes to conn. The returned function ends the watch; conn
// has its deadlines cleared then, and the cause is returned where ctx had ended.
func watch(ctx context.Context, conn deadliner) (stop func() error) {
	interrupted := make(chan struct{})
	undo := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = conn.SetDeadline(time.Unix(1, 0)) // fails on a closed connection alone, which interrupts as well
	})
	return func() error {
		if undo() {
			return nil
		}
		<-interrupted
		_ = conn.SetDeadline(time.Time{}) // as above
		return context.Cause(ctx)
	}
}
