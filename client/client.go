package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/internal/regular"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Client is one authenticated connection to a kernel. Close ends it.
type Client struct {
	conn    *conn
	places  Places
	login   *login
	as      int64 // PID of this connection in the kernel
	origin  string
	address string // where the kernel was reached
	kernel  string // target of queries, asked through the connected kernel; empty: the connected one

	mu           sync.Mutex
	use          use
	over         error // why the connection has ended; nil: it has not
	failure      error // an error that answers no message: the kernel's reason for closing the connection
	out          []byte
	subscription *subscription  // nil: events are dropped
	pending      []*pendingCall // sent or queued, not answered, in order
	stamps       *schema.Stamper

	wake  chan struct{} // something is in out
	quit  chan struct{} // closed to end the sender
	tasks sync.WaitGroup
}

// use is the use of a Client, which its first call determines.
type use uint8

const (
	unused use = iota
	calling
	streaming
)

func newClient(conn *conn) *Client {
	return &Client{
		conn:   conn,
		stamps: schema.NewStamper(),
		wake:   make(chan struct{}, 1),
		quit:   make(chan struct{}),
	}
}

// PID returns the process number of the kernel, 0 if the system does not report it.
func (c *Client) PID() int { return c.conn.pid }

// Places returns the paths in the kernel's runtime directory.
func (c *Client) Places() Places { return c.places }

// Identity identifies both ends of a connection.
type Identity struct {
	PID  int64            // 0: the operator
	Key  access.PublicKey // of the login; zero if the kernel asked for none (open mode)
	From string           // where its private part is: "ssh-agent" or a file's path
	Host access.PublicKey // of the kernel; zero in open mode
}

// Identity returns the identities that the login has established.
func (c *Client) Identity() Identity {
	c.login.mu.Lock()
	defer c.login.mu.Unlock()
	a := c.login.answer
	return Identity{PID: c.as, Key: a.Key, From: a.From, Host: a.Host}
}

// Greet runs the prologue on another connection to the same socket of the kernel, with the key that logged this one in.
func (c *Client) Greet(ctx context.Context, conn access.Lines) error {
	_, err := c.login.greet(ctx, conn, c.conn.channel)
	return err
}

// Call sends one message and returns its answer; see Do.
func (c *Client) Call(ctx context.Context, kind schema.Kind, typ string, data []byte) (schema.Message, error) {
	return c.Do(ctx, schema.Message{Kind: kind, Type: typ, Data: data})
}

// Do sends m, a command or a query, as an OsMessage and returns its answer, whose data the caller owns. It adds a
// missing id and timestamp. It replaces references to blobs in the answer by their content. It returns the kernel's
// fault if that answered with an error (Answered), the cause of ctx's end, a fault.DaemonHungUp, or an error that wraps
// ErrClosed or ErrBusy. Only ErrBusy guarantees that the kernel did not run m.
func (c *Client) Do(ctx context.Context, m schema.Message) (schema.Message, error) {
	return c.DoReporting(ctx, m, nil)
}

// DoReporting does what Do does, and calls report for each Syscall.Progressed of the call before it returns.
// nil means no reports. While report runs, only the latest event is kept.
func (c *Client) DoReporting(ctx context.Context, m schema.Message, report func(*schema.ProgressedEvent)) (schema.Message, error) {
	if c.kernel != "" {
		return c.Ask(ctx, c.kernel, m)
	}
	return c.exchange(ctx, m, report)
}

// Ask makes a query at another kernel of the cluster, through the connected one (Cluster.Ask). The answer is as that of
// a connection to the other kernel.
func (c *Client) Ask(ctx context.Context, kernel string, m schema.Message) (schema.Message, error) {
	if m.Kind != schema.KindQuery {
		return schema.Message{}, AsAnswered(fault.ClusterNotAsked.New("%s changes something: another kernel answers queries", m.Type).
			WithFix("make the call at the kernel %s", kernel))
	}
	in := &schema.ClusterAskInput{Kernel: kernel, Type: m.Type, Data: m.Data}
	data, err := schema.ClusterAsk.Encode(in)
	if err != nil {
		return schema.Message{}, err
	}
	answer, err := c.exchange(ctx, schema.Message{Kind: schema.KindQuery, Type: schema.ClusterAsk.Type, Data: data, Meta: m.Meta}, nil)
	if err != nil {
		return schema.Message{}, err
	}
	out, err := schema.ClusterAsk.Decode(answer.Data)
	if err != nil {
		return schema.Message{}, fmt.Errorf("ask the kernel %s: %w", kernel, err)
	}
	answer.Type, answer.Data = m.Type, out.Data
	answer.Meta.Kernel = `{"seq":` + strconv.FormatInt(out.Seq, 10) + `}`
	return answer, nil
}

// exchange does what DoReporting does at the kernel of the connection.
func (c *Client) exchange(ctx context.Context, m schema.Message, report func(*schema.ProgressedEvent)) (schema.Message, error) {
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
			c.follow(&m)
			return m, err
		case <-ctx.Done():
			return schema.Message{}, context.Cause(ctx)
		}
	}
}

// send queues m and registers that it needs an answer.
func (c *Client) send(m schema.Message) (*pendingCall, error) {
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
	k := &pendingCall{id: m.Meta.ID, done: make(chan struct{})}
	if m.Meta.Progress {
		k.progress = make(chan *schema.ProgressedEvent, 1)
	}
	c.pending = append(c.pending, k)
	c.out = schema.AppendMessage(c.out, &m)
	select {
	case c.wake <- struct{}{}:
	default: // sendAll is awake already
	}
	return k, nil
}

// take decides the use of the Client and starts its goroutines. The caller holds mu.
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

// sendAll writes the queued messages, all that are queued with one write.
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
			return // the kernel has closed; receiveAll reports that after the remaining answers
		}
		spare = out
	}
}

// oneLine replaces line breaks, which in valid JSON occur only between tokens.
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

// Close ends the connection. Calls without an answer return ErrClosed.
func (c *Client) Close() error {
	c.end(ErrClosed)
	err := c.conn.Close()
	c.tasks.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) { // Stream closes it itself
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}

// end ends the connection with err, which pending and later calls return. Later calls of end do nothing.
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

// Call calls a syscall by its row and returns the data of the reply: Call(ctx, c, schema.MemoryList,
// &schema.MemoryListInput{}). It returns the errors of [Client.Do], and an error for a reply that does not fit Out.
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

// errLocked means that a daemon holds the instance lock.
var errLocked = errors.New("a daemon is starting, or has not ended yet")

// Shutdown asks the kernel to end, and waits until it has closed this connection and, as its last action, released its
// instance lock, if that is on this machine. It returns the answer and the errors of Do, or the cause of ctx's end.
func (c *Client) Shutdown(ctx context.Context) (schema.Message, error) {
	answer, err := c.Call(ctx, schema.KindCommand, "Syscall.Shutdown", []byte("{}"))
	if err != nil {
		return answer, err
	}
	select {
	case <-c.quit: // the connection has ended
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
	if c.remote() {
		return answer, nil // the lock is on the kernel's machine
	}
	_, err = backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, unlocked(c.places.Lock) },
		backoff.WithBackOff(pace()), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return answer, fmt.Errorf("wait for the kernel's end: %w", err)
	}
	return answer, nil
}

// unlocked returns errLocked while a daemon holds the instance lock. It tests that with a shared lock, which it
// releases at once.
func unlocked(path string) error {
	file, _, err := regular.Open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return backoff.Permanent(err)
	}
	defer lockfile.Release(file) // nothing was written
	err = lockfile.TryShared(file)
	switch {
	case errors.Is(err, lockfile.ErrHeld):
		return errLocked
	case err != nil:
		return backoff.Permanent(err)
	}
	return nil
}
