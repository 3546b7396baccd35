package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// authenticate is the type of both frames of the prologue.
const authenticate = "Syscall.Authenticate"

// Lines is what the prologue needs of a connection, whatever carries it.
type Lines interface {
	Next() ([]byte, error)
	Write(p []byte) (int, error)
	SetDeadline(t time.Time) error
	Dialect() schema.Dialect
	LineLimit() int
}

// prologue is the daemon's side of one exchange. The caller bounds it with deadlines on link.
type prologue struct {
	link   Lines
	offer  Offer
	stamps *schema.Stamper
	out    []byte
	torn   bool // a line was cut short: no other may follow it

	line    []byte            // the last one read
	refused func(line []byte) // receives lines that are not messages; may be nil
}

// Rejection is the error of an answer that Verify refused, before the client is told.
type Rejection struct {
	answer schema.Message
	err    error
}

// Error returns the text of Verify's error.
func (r *Rejection) Error() string { return r.err.Error() }

// Unwrap returns Verify's error.
func (r *Rejection) Unwrap() error { return r.err }

// run sends the offer and reads until it is answered (BRIDGE 4.5.4). It returns the identity that
// the answer proves, or why the connection must be closed: the link's error, such as io.EOF, or a
// *Rejection. After a wrong answer it reads no other, so that a client cannot try many keys on one
// connection.
func (p *prologue) run() (Identity, error) {
	if err := p.sendOffer(); err != nil {
		return Identity{}, fmt.Errorf("send prologue: %w", err)
	}
	for {
		m, failure, err := p.read()
		switch {
		case err != nil:
			return Identity{}, err
		case answersOffer(&m, failure, p.offer.Verify == nil):
			if p.offer.Verify == nil {
				return Identity{}, nil
			}
			identity, err := p.offer.Verify(m.Data)
			if err != nil {
				return Identity{}, &Rejection{answer: m, err: err}
			}
			return identity, nil
		case failure != nil && p.refused != nil:
			p.refused(p.line)
		case failure == nil:
			failure = fault.AuthRequired.New(
				"not authenticated: send a reply of type %s before anything else", authenticate)
		}
		if err := p.refuse(&m, failure); err != nil {
			return Identity{}, fmt.Errorf("send refusal: %w", err)
		}
	}
}

// Greet runs the prologue of a channel that the kernel made itself, whose other end needs no proof.
// It waits for the answer as long as the channel is open. refused is called with each line before
// it that is no message; it may be nil.
func Greet(link Lines, refused func(line []byte)) error {
	offer, err := OpenMode{}.Offer(context.Background(), Peer{}, nil)
	if err != nil {
		return err
	}
	p := prologue{link: link, offer: offer, stamps: schema.NewStamper(), refused: refused}
	if _, err := p.run(); err != nil {
		return fmt.Errorf("connection prologue: %w", err)
	}
	return nil
}

// sendOffer sends the first frame, in the socket's dialect: the client has not shown one yet.
func (p *prologue) sendOffer() error {
	issued := p.offer.Issued
	if issued.IsZero() {
		issued = time.Now()
	}
	st := p.stamps.Next(time.Now())
	p.out = schema.AppendMessage(p.out[:0], &schema.Message{
		Dialect: p.link.Dialect(),
		Kind:    schema.KindCommand,
		Type:    authenticate,
		Data:    p.offer.Data,
		Meta:    schema.Metadata{Present: true, ID: string(st.ID[:]), Timestamp: issued.UnixMilli()},
	})
	return p.flush()
}

// flush writes all of out, or fails.
func (p *prologue) flush() error {
	_, err := p.link.Write(p.out)
	p.torn = err != nil
	return err
}

// read returns the next frame, and what is wrong with it.
func (p *prologue) read() (schema.Message, *fault.Fault, error) {
	line, err := p.link.Next()
	if errors.Is(err, schema.ErrLineTooLong) {
		return schema.Message{Dialect: p.link.Dialect()}, schema.TooLong(p.link.LineLimit()), nil
	}
	if err != nil {
		return schema.Message{}, nil, err
	}
	m, failure := schema.DecodeRequest(line, p.link.Dialect(), p.link.LineLimit())
	p.line = line
	return m, failure, nil
}

// refuse answers m with one error.
func (p *prologue) refuse(m *schema.Message, failure *fault.Fault) error {
	st := p.stamps.Next(time.Now())
	p.out = schema.AppendError(p.out[:0], m, failure, &st)
	return p.flush()
}

// rejectTime bounds the write of a refusal: a client that reads has room for it.
const rejectTime = time.Second

// reject tells a client why its answer was refused, after the delay of Hold or when ctx ends.
func (p *prologue) reject(ctx context.Context, r *Rejection) error {
	if p.offer.Hold != nil {
		delay, release := p.offer.Hold()
		held := time.NewTimer(delay)
		select {
		case <-held.C:
		case <-ctx.Done():
		}
		held.Stop()
		release()
	}
	if err := p.link.SetDeadline(time.Now().Add(rejectTime)); err != nil {
		return err
	}
	return p.refuse(&r.answer, fault.Of(r.err))
}

// farewellTime bounds the last write to a connection that is closed: the reason is dropped if the
// client has no room for it.
const farewellTime = 20 * time.Millisecond

// farewell tells a connection why it is closed, unless that would land inside another line.
func (p *prologue) farewell(reason *fault.Fault) error {
	if p.torn {
		return nil
	}
	if err := p.link.SetDeadline(time.Now().Add(farewellTime)); err != nil {
		return err
	}
	return p.refuse(&schema.Message{Dialect: p.link.Dialect()}, reason)
}

// answersOffer reports whether m, decoded with failure, is the answer that the prologue waits for.
// In open mode neither data nor metadata is required.
func answersOffer(m *schema.Message, failure *fault.Fault, open bool) bool {
	if m.Type != authenticate {
		return false
	}
	if !open {
		return failure == nil && m.Kind == schema.KindReply
	}
	if m.Kind != schema.KindReply && m.Kind != schema.KindCommand {
		return false
	}
	return failure == nil || failure.Kind == fault.SchemaViolation && lacks(m, failure.Field)
}

// lacks reports whether m does not have member.
func lacks(m *schema.Message, member string) bool {
	switch member {
	case "metadata":
		return !m.Meta.Present
	case "data", "payload":
		return m.Data == nil
	}
	return false
}

// ErrNoPrologue means that the other end did not begin with Syscall.Authenticate: it is not a
// kernel.
var ErrNoPrologue = errors.New("the other end does not speak the pwos prologue")

// ClientPrologue is the client's side of the exchange (BRIDGE 4.5.2). It reads the daemon's first
// frame, calls answer with that frame's data and time, and sends the returned data in the daemon's
// dialect. A good answer is not acknowledged. The end of ctx interrupts everything except answer.
//
// It returns an error that wraps ErrNoPrologue if the other end is not a kernel, io.EOF if it
// closed first, so that a client may try again, or answer's own error.
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

// AnswerFunc returns the data of the reply to an offer that was issued at the given time.
type AnswerFunc = func(offer []byte, issued time.Time) ([]byte, error)

// AnswerOpen is the answer of a client without a key: an empty object, whatever the offer.
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

// readOffer reads the first frame, which must be a kernel's, in either dialect. Its data aliases
// link's buffer.
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

// deadliner is a connection that can be interrupted by deadlines.
type deadliner interface{ SetDeadline(t time.Time) error }

// watch interrupts reads and writes on conn at the end of ctx. The returned function ends the watch
// and clears the deadlines; it returns the cause if ctx has ended.
func watch(ctx context.Context, conn deadliner) (stop func() error) {
	interrupted := make(chan struct{})
	undo := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = conn.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection, which interrupts as well
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
