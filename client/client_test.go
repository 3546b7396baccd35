package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestCall(t *testing.T) {
	t.Parallel()
	c := connected(t, answerAll)
	answer, err := c.Call(testkit.Context(t), schema.KindQuery, "Syscall.Ping", []byte("{\"payload\":\n 1e400,\r\n\"x\":\"\\n\"}"))
	testkit.Must(t, err)
	if got, want := string(answer.Data), `{"payload":  1e400,  "x":"\n"}`; got != want {
		t.Errorf("data %s, want %s", got, want)
	}
	if answer.Kind != schema.KindReply || answer.Type != "Syscall.Ping" || answer.Meta.Causation == "" {
		t.Errorf("answer %+v is no reply with a causation", answer)
	}
}

func TestDoKeepsMetadata(t *testing.T) {
	t.Parallel()
	c := connected(t, answerAll)
	answer, err := c.Do(testkit.Context(t), schema.Message{
		Dialect: schema.OsEvent, Kind: schema.KindCommand, Type: "A.B",
		Meta: schema.Metadata{ID: "mine", Correlation: "saga", IdempotencyKey: "once"},
	})
	testkit.Must(t, err)
	if answer.Meta.Causation != "mine" || answer.Meta.Correlation != "saga" || string(answer.Data) != "null" {
		t.Errorf("answer %+v, want causation mine, correlation saga, data null", answer)
	}
}

func TestDoRefuses(t *testing.T) {
	t.Parallel()
	c := connected(t, answerAll)
	for name, m := range map[string]schema.Message{
		"an event, which has no answer": {Kind: schema.KindEvent, Type: "A.B", Data: []byte("{}")},
		"data that is no JSON":          {Kind: schema.KindQuery, Type: "A.B", Data: []byte(`{"a":1,"a":2}`)},
	} {
		if _, err := c.Do(testkit.Context(t), m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil); err != nil {
		t.Errorf("after refusals: %v", err)
	}
}

func TestKernelError(t *testing.T) {
	t.Parallel()
	c := connected(t, answerAll)
	_, err := c.Call(testkit.Context(t), schema.KindQuery, "No.Such", nil)
	failure := client.Answered(err)
	if failure == nil {
		t.Fatalf("error %v, want a KernelError", err)
	}
	if failure.Code() != 404 || failure.Message != "no such syscall" {
		t.Errorf("error %+v", failure)
	}
	if failure.Cause == nil || failure.Cause.Message != "it is not registered" || failure.Cause.Cause != nil {
		t.Errorf("cause %+v", failure.Cause)
	}
	if got, want := err.Error(), "no such syscall: it is not registered"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

func TestKernelErrorOfAnotherForm(t *testing.T) {
	t.Parallel()
	c := connected(t, func(conn access.Lines) {
		if _, err := conn.Next(); err == nil {
			_, _ = io.WriteString(conn, `{"kind":"error","type":"A.B","data":"broken","metadata":{"id":"1","timestamp":1}}`+"\n")
		}
	})
	_, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil)
	failure := client.Answered(err)
	if failure == nil || failure.Code() != 500 || !strings.Contains(failure.Message, `"broken"`) {
		t.Errorf("error %v, want a KernelError 500 that shows the data", err)
	}
}

// TestCallsAtOnce: calls from many goroutines share a connection, and each gets its own answer.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	c := connected(t, answerAll)
	ctx := testkit.Context(t)
	var calls sync.WaitGroup
	for i := range 500 {
		calls.Go(func() {
			data := fmt.Sprintf(`{"payload":%d}`, i)
			answer, err := c.Call(ctx, schema.KindQuery, "Syscall.Ping", []byte(data))
			if err != nil || string(answer.Data) != data {
				t.Errorf("answer %s, error %v, want %s", answer.Data, err, data)
			}
		})
	}
	calls.Wait()
}

// TestErrorWithoutCausation: the kernel cannot read the id of an over-long line, so its answer goes to the oldest call.
func TestErrorWithoutCausation(t *testing.T) {
	t.Parallel()
	c := connected(t, answerAll)
	_, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", fmt.Appendf(nil, "%q", strings.Repeat("x", schema.MaxLine)))
	failure := client.Answered(err)
	if failure == nil || failure.Code() != 413 {
		t.Fatalf("error %v, want the kernel's 413", err)
	}
	if _, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil); err != nil {
		t.Errorf("the call after it: %v", err)
	}
}

func TestCallCancelled(t *testing.T) {
	t.Parallel()
	arrived, answerNow := make(chan struct{}), make(chan struct{})
	c := connected(t, func(conn access.Lines) {
		line, err := conn.Next()
		if err != nil {
			return
		}
		m, _ := schema.Decode(line, schema.OsMessage)
		close(arrived)
		<-answerNow
		st := schema.NewStamper().Next(time.Now())
		_, _ = conn.Write(schema.AppendReply(nil, &m, []byte(`"late"`), &st))
		answerAll(conn)
	})
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	go func() {
		<-arrived
		cancel(enough)
	}()
	if _, err := c.Call(ctx, schema.KindQuery, "A.B", nil); !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause of the context's end", err)
	}
	close(answerNow)
	answer, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", []byte(`"next"`))
	if err != nil || string(answer.Data) != `"next"` {
		t.Errorf("after a late answer: %s, %v", answer.Data, err)
	}
}

func TestHungUp(t *testing.T) {
	t.Parallel()
	c := connected(t, func(conn access.Lines) { _, _ = conn.Next() })
	for range 2 { // the call in flight, and one after the end
		if _, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil); !errors.Is(err, fault.DaemonHungUp) {
			t.Errorf("error %v, want fault.DaemonHungUp", err)
		}
	}
}

// TestDismissed: an error that answers no call is the reason of the connection's end.
func TestDismissed(t *testing.T) {
	t.Parallel()
	c := connected(t, func(conn access.Lines) {
		_, _ = conn.Next()
		_, _ = io.WriteString(conn, `{"kind":"error","type":"Syscall.Authenticate","data":{"code":401,"message":"wrong key"},`+
			`"metadata":{"id":"1","timestamp":1,"causation":"the reply"}}`+"\n")
	})
	_, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil)
	failure := client.Answered(err)
	if failure == nil || failure.Code() != 401 {
		t.Errorf("error %v, want the kernel's 401", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	c := connected(t, func(conn access.Lines) {
		_, _ = conn.Next()
		close(arrived)
		_, _ = conn.Next() // until the client closes
	})
	go func() {
		<-arrived
		_ = c.Close()
	}()
	if _, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil); !errors.Is(err, client.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
	testkit.Must(t, c.Close())
	if _, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: error %v, want ErrClosed", err)
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	c := connected(t, answerAll)
	if _, err := c.Call(testkit.Context(t), schema.KindQuery, "A.B", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stream(testkit.Context(t), strings.NewReader(""), io.Discard); !errors.Is(err, client.ErrBusy) {
		t.Errorf("streaming after a call: error %v, want ErrBusy", err)
	}
	other := connected(t, answerAll)
	if _, err := other.Stream(testkit.Context(t), strings.NewReader(""), io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Call(testkit.Context(t), schema.KindQuery, "A.B", nil); !errors.Is(err, client.ErrBusy) {
		t.Errorf("calling after a stream: error %v, want ErrBusy", err)
	}
}

// TestAnyStream: a Client needs no Unix socket.
func TestAnyStream(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		answerAll(pipe{far, schema.NewLineReader(far, schema.MaxLine)})
	}()
	c := client.Over(near)
	answer, err := c.Call(testkit.Context(t), schema.KindQuery, "Syscall.Ping", []byte(`{"payload":1}`))
	if err != nil || string(answer.Data) != `{"payload":1}` {
		t.Errorf("answer %s, error %v", answer.Data, err)
	}
	testkit.Must(t, c.Close())
	testkit.Receive(t, served, "the end of the kernel's side")
	testkit.Must(t, far.Close())
}

// pipe has the lines of a kernel's end of a net.Pipe.
type pipe struct {
	net.Conn
	*schema.LineReader
}

func (pipe) Dialect() schema.Dialect { return schema.OsMessage }
func (pipe) LineLimit() int          { return schema.MaxLine }
