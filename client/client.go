package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Client is one authenticated connection to a kernel. Close ends it.
type Client struct {
	conn   *unixsock.Conn
	places unixsock.Places
	pid    int
	login  *login
	as     int64 // who we are to the kernel
	origin string

	mu      sync.Mutex
	use     use
	over    error // why nothing more can be sent; nil as long as it can
	failure error // an error that answers no message of ours: why the kernel hung up
	out     []byte
	heard   *heard  // nil: events are of no interest
	pending []*call // sent or about to be, not answered, in that order
	stamps  *schema.Stamper

	wake  chan struct{} // something is in out
	quit  chan struct{} // the sender is to end
	tasks sync.WaitGroup
}

// use is what a Client is used for: it is settled by the first call.
type use uint8

const (
	unused use = iota
	calling
	streaming
)

func newClient(conn *unixsock.Conn, pid int) *Client {
	return &Client{
		conn:   conn,
		pid:    pid,
		stamps: schema.NewStamper(),
		wake:   make(chan struct{}, 1),
		quit:   make(chan struct{}),
	}
}

// PID returns the process number of the kernel, 0 where the system does not tell.
func (c *Client) PID() int { return c.pid }

// Places returns what lies in the kernel's runtime directory.
func (c *Client) Places() unixsock.Places { return c.places }

// Identity is who a Client is to its kernel.
type Identity struct {
	PID  int64            // 0: the operator
	Key  access.PublicKey // that was shown; zero where the kernel asked for none (open mode)
	From string           // where its private part is: "ssh-agent" or a file's path
	Host access.PublicKey // of the kernel; zero in open mode
}

// Identity returns who the kernel takes us for.
func (c *Client) Identity() Identity {
	c.login.mu.Lock()
	defer c.login.mu.Unlock()
	a := c.login.answer
	return Identity{PID: c.as, Key: a.Key, From: a.From, Host: a.Host}
}

// Greet takes another connection to the same kernel through the prologue, with the key that got this one in.
func (c *Client) Greet(ctx context.Context, conn *unixsock.Conn) error {
	_, err := c.login.greet(ctx, conn)
	return err
}

// Call sends one message and returns its answer; see Do.
func (c *Client) Call(ctx context.Context, kind schema.Kind, typ string, data []byte) (schema.Message, error) {
	return c.Do(ctx, schema.Message{Kind: kind, Type: typ, Data: data})
}

// Do sends m, a command or a query, as an OsMessage and returns its answer, whose data is the caller's to keep. An id and
// a timestamp that m lacks are made. It returns the kernel's fault where it answered with an error (Answered), the cause
// of ctx's end, a fault.DaemonHungUp, or an error that wraps ErrClosed or ErrBusy; the last is the only one which tells that nothing
// was run. What the kernel kept beside an answer that is too long for a line is read, and stands in its place.
func (c *Client) Do(ctx context.Context, m schema.Message) (schema.Message, error) {
	return c.DoReporting(ctx, m, nil)
}

// DoReporting is Do, with report called for each Syscall.Progressed of the call, before it returns; nil: there are to be none. While
// report runs, only the latest of those that come is kept.
func (c *Client) DoReporting(ctx context.Context, m schema.Message, report func(*schema.ProgressedEvent)) (schema.Message, error) {
	m.Meta.Progress = report != nil
	if m.Kind != schema.KindCommand && m.Kind != schema.KindQuery {
		return schema.Message{}, fmt.Errorf("send %s: a %s has no answer", m.Type, m.Kind)
	}
	if m.Data != nil && !schema.Valid(m.Data) {
		return schema.Message{}, fmt.Errorf("send %s: its data is not one strict JSON value", m.Type)
	}
	k, err := c.send(m)
	if err != nil {
		return schema.Message{}, fmt.Errorf("send %s: %w", m.Type, err)
	}
	for {
		select {
		case e := <-k.progress:
			report(e)
		case <-k.done:
			select {
			case e := <-k.progress:
				report(e)
			default:
			}
			m, err := k.outcome()
			follow(&m)
			return m, err
		case <-ctx.Done():
			return schema.Message{}, context.Cause(ctx)
		}
	}
}

// send queues m and notes that it wants an answer.
func (c *Client) send(m schema.Message) (*call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.take(calling); err != nil {
		return nil, err
	}
	now := time.Now()
	m.Dialect, m.Meta.Present = schema.OsMessage, true
	if m.Meta.ID == "" {
		st := c.stamps.Next(now)
		m.Meta.ID = string(st.ID[:])
	}
	if m.Meta.Origin == "" {
		m.Meta.Origin = c.origin
	}
	if m.Meta.Timestamp == 0 {
		m.Meta.Timestamp = now.UnixMilli()
	}
	m.Data = oneLine(m.Data)
	k := &call{id: m.Meta.ID, done: make(chan struct{})}
	if m.Meta.Progress {
		k.progress = make(chan *schema.ProgressedEvent, 1)
	}
	c.pending = append(c.pending, k)
	c.out = schema.AppendMessage(c.out, &m)
	select {
	case c.wake <- struct{}{}:
	default: // it has been told already
	}
	return k, nil
}

// take settles what the Client is used for and starts what that needs. The caller holds mu.
func (c *Client) take(want use) error {
	switch {
	case c.over != nil:
		return c.over
	case c.use == unused && want == calling:
		c.tasks.Go(c.sendAll)
		c.tasks.Go(c.receiveAll)
	case c.use == unused || c.use == calling && want == calling:
	default:
		return ErrBusy
	}
	c.use = want
	return nil
}

// sendAll writes what Do queues, everything that has gathered with one write.
func (c *Client) sendAll() {
	var spare []byte
	for {
		select {
		case <-c.quit:
			return
		case <-c.wake:
		}
		c.mu.Lock()
		out := c.out
		c.out = spare[:0]
		c.mu.Unlock()
		if _, err := c.conn.Write(out); err != nil {
			return // the other end is gone; receiveAll finds out too, after the answers that are still to be read
		}
		spare = out
	}
}

// oneLine replaces line breaks, which in valid JSON stand only between tokens.
func oneLine(data []byte) []byte {
	if !bytes.ContainsAny(data, "\r\n") {
		return data
	}
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, data)
}

// Close ends the connection. Calls that have no answer yet return ErrClosed.
func (c *Client) Close() error {
	c.end(ErrClosed)
	err := c.conn.Close()
	c.tasks.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) { // Stream closes it itself
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}

// end says that nothing more is sent and no further answer comes, because of err. Only the first one counts.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return
	}
	if c.failure != nil && !errors.Is(err, ErrClosed) {
		err = c.failure
	}
	c.over = err
	for _, k := range c.pending {
		k.err = err
		close(k.done)
	}
	c.pending = nil
	close(c.quit)
}

// Call calls a syscall by its row and returns the data of the reply: Call(ctx, c, schema.MemoryList, &schema.MemoryListInput{}).
// Its errors are those of [Client.Do], and that of a reply which does not have the row's form.
func Call[In, Out any](ctx context.Context, c *Client, row schema.Callable[In, Out], in *In) (*Out, error) {
	data, err := row.Encode(in)
	if err != nil {
		return nil, err
	}
	answer, err := c.Call(ctx, row.Row().Kind, row.Row().Type, data)
	if err != nil {
		return nil, err
	}
	return row.Decode(answer.Data)
}
