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

// prologue is the daemon's side of one exchange. Whoever runs it bounds it with deadlines on link.
type prologue struct {
	link   Lines
	offer  Offer
	stamps *schema.Stamper
	out    []byte
	torn   bool // a line was cut short, so nothing can follow it

	line    []byte            // that was read last
	refused func(line []byte) // is told of lines that are no messages; may be nil
}

// Rejection is an answer that Verify refused, and has still to be told so.
type Rejection struct {
	answer schema.Message
	err    error
}

// Error is that of Verify.
func (r *Rejection) Error() string { return r.err.Error() }

// Unwrap returns Verify's error.
func (r *Rejection) Unwrap() error { return r.err }

// run sends the offer and reads until it is answered (BRIDGE 4.5.4). It returns whom the answer proves the client to be, or
// why the connection has to be closed: the link's error, io.EOF among them, or a *Rejection. A wrong answer is the last
// one, so that nobody can try key after key on one connection.
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

// Greet leads a channel through the prologue whose other end needs no proof, since the kernel itself has made it. It waits for
// the answer as long as the channel is open. refused is called with each line before it that is no message; it may be nil.
func Greet(link Lines, refused func(line []byte)) error {
	offer, err := OpenMode{}.Offer(context.Background(), Peer{}, "")
	if err != nil {
		return err
	}
	p := prologue{link: link, offer: offer, stamps: schema.NewStamper(), refused: refused}
	if _, err := p.run(); err != nil {
		return fmt.Errorf("connection prologue: %w", err)
	}
	return nil
}

// sendOffer says the first word, in the socket's dialect: the client has not shown one yet.
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

// flush writes what out holds, all of it or with an error.
func (p *prologue) flush() error {
	_, err := p.link.Write(p.out)
	p.torn = err != nil
	return err
}

// read returns the next frame, with what is wrong with it.
func (p *prologue) read() (schema.Message, *fault.Fault, error) {
	line, err := p.link.Next()
	if errors.Is(err, schema.ErrLineTooLong) {
		return schema.Message{Dialect: p.link.Dialect()}, schema.TooLong(p.link.LineLimit()), nil
	}
	if err != nil {
		return schema.Message{}, nil, err
	}
	m, failure := schema.Decode(line, p.link.Dialect())
	if long := m.Shorten(p.link.LineLimit()); long != nil {
		failure = long
	}
	p.line = line
	return m, failure, nil
}

// refuse answers m with one error.
func (p *prologue) refuse(m *schema.Message, failure *fault.Fault) error {
	st := p.stamps.Next(time.Now())
	p.out = schema.AppendError(p.out[:0], m, failure, &st)
	return p.flush()
}

// rejectTime bounds the write of a refusal: it fits into the buffer of a client that reads.
const rejectTime = time.Second

// reject tells a client why its answer was refused, after the time that Hold wants or when ctx ends.
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

// farewellTime bounds the last write to a connection that is sent away: it is told why if it has room for that.
const farewellTime = 20 * time.Millisecond

// farewell tells a connection why it is sent away, unless that would stand in the middle of another line.
func (p *prologue) farewell(reason *fault.Fault) error {
	if p.torn {
		return nil
	}
	if err := p.link.SetDeadline(time.Now().Add(farewellTime)); err != nil {
		return err
	}
	return p.refuse(&schema.Message{Dialect: p.link.Dialect()}, reason)
}

// answersOffer reports whether m, decoded with failure, is the answer that the prologue waits for. In open mode the
// answer says nothing, so neither its data nor its metadata has to be there.
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

// lacks reports whether member is one that m does not have at all.
func lacks(m *schema.Message, member string) bool {
	switch member {
	case "metadata":
		return !m.Meta.Present
	case "data", "payload":
		return m.Data == nil
	}
	return false
}
