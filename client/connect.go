package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// connect makes one connection and runs the prologue.
func (d *dialer) connect(ctx context.Context) (*Client, error) {
	conn, err := d.route.dial(ctx)
	if err != nil {
		return nil, err
	}
	c, err := d.greet(ctx, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c.places, c.login, c.address = d.places, d.login, d.route.String()
	return c, nil
}

// Over returns a client over a connection without prologue, to a kernel in this process. Close closes it.
func Over(stream net.Conn) *Client { return newClient(newConn(stream, os.Getpid(), nil)) }

func (d *dialer) greet(ctx context.Context, conn *conn) (*Client, error) {
	asked, err := d.login.greet(ctx, conn, conn.channel)
	if err != nil {
		return nil, d.login.judge(err)
	}
	c := newClient(conn)
	if !asked {
		return c, nil
	}
	if c.as, err = confirm(ctx, conn); err != nil {
		return nil, d.loginFailed(err)
	}
	return c, nil
}

// loginFailed returns the error of a failed confirmation; it wraps errNextKey if another key is left to offer.
func (d *dialer) loginFailed(err error) error {
	refusal := Answered(err)
	if refusal == nil || refusal.Kind != fault.Unauthenticated {
		return err
	}
	if over := d.login.refused(refusal); over != nil {
		return over
	}
	return fmt.Errorf("%w: %w", errNextKey, refusal)
}

// errNextKey means that the kernel refused a key, and another one is left to offer.
var errNextKey = errors.New("the kernel refused a key")

// confirm checks with a ping that the kernel accepted the signature, and returns the PID of the connection. The kernel
// answers an invalid signature, but not a valid one.
func confirm(ctx context.Context, conn *conn) (as int64, err error) {
	undo := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // fails only on a closed connection, whose reads have ended
	defer func() {
		if !undo() {
			err = context.Cause(ctx)
		}
	}()
	st := schema.NewStamper().Next(time.Now())
	ping := schema.Message{
		Kind: schema.KindQuery, Type: "Syscall.Ping", Data: []byte(`{"payload":null}`),
		Meta: schema.Metadata{Present: true, ID: string(st.ID[:]), Timestamp: time.Now().UnixMilli()},
	}
	// A kernel that has closed the connection has sent its reason before, so the read goes on if the write fails.
	_, writeErr := conn.Write(schema.AppendMessage(nil, &ping))
	line, err := conn.Next()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("wait for the kernel to accept the key: %w", err), writeErr)
	}
	m, failure := schema.Decode(line, schema.OsMessage)
	switch {
	case failure != nil:
		return 0, fmt.Errorf("read answer to a login: %w", failure)
	case m.Kind == schema.KindError && m.Meta.Causation != ping.Meta.ID:
		return 0, answerOf(&m)
	}
	as, _ = pidIn(&m)
	return as, nil
}

// SeqOf returns the seq of an answer's own entry; 0 if it has none.
func SeqOf(m *schema.Message) int64 {
	seq, _ := proofOf(m, "seq")
	return seq
}

// pidIn reads metadata.kernel.pid of an answer (PROTOCOL 3).
func pidIn(m *schema.Message) (pid int64, ok bool) { return proofOf(m, "pid") }

// proofOf returns a member of metadata.kernel.
func proofOf(m *schema.Message, member string) (n int64, ok bool) {
	if m.Meta.Kernel == "" {
		return 0, false
	}
	proof, failure := schema.TypeOf[map[string]schema.Value]().Decode([]byte(m.Meta.Kernel))
	if failure != nil {
		return 0, false
	}
	raw := (*proof.(*map[string]schema.Value))[member]
	if raw == nil {
		return 0, false
	}
	number, failure := schema.TypeOf[int64]().Decode(raw)
	if failure != nil {
		return 0, false
	}
	return *number.(*int64), true
}

// SelfPID asks the kernel for the PID of this connection; 0 is the operator.
func (c *Client) SelfPID(ctx context.Context) (int64, error) {
	answer, err := c.Call(ctx, schema.KindQuery, schema.SyscallPing.Type, []byte(`{"payload":null}`))
	if err != nil {
		return 0, err
	}
	pid, ok := pidIn(&answer)
	if !ok {
		return 0, errors.New("ask for the PID of the connection: the kernel's answer has none")
	}
	return pid, nil
}
