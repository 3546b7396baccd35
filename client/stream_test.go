package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// ping is one well-formed line without its line break.
func ping(payload int) string {
	return fmt.Sprintf(`{"kind":"query","type":"Syscall.Ping","data":{"payload":%d},"metadata":{"id":"p-%d","timestamp":1}}`, payload, payload)
}

func pings(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(ping(i))
		b.WriteByte('\n')
	}
	return b.String()
}

func TestStream(t *testing.T) {
	t.Parallel()
	const event = `{"kind":"event","type":"A.B","data":1,"metadata":{"id":"e","timestamp":1}}`
	const legacy = `{"type":"query","name":"A.B","payload":1}`
	const legacyFault = `{"type":"query","name":"no name","payload":1}`
	for name, tt := range map[string]struct {
		in   string
		want client.Tally
	}{
		"nothing":                        {"", client.Tally{}},
		"white space":                    {" \t\r\n\n  ", client.Tally{}},
		"one line":                       {ping(1) + "\n", client.Tally{Answers: 1}},
		"last line without a line break": {ping(1) + "\n" + ping(2), client.Tally{Answers: 2}},
		"carriage returns, blank lines":  {ping(1) + "\r\n\r\n\n" + ping(2) + "\r\n", client.Tally{Answers: 2}},
		"an event":                       {event + "\n", client.Tally{}},
		"an error":                       {"{}\n" + ping(1), client.Tally{Answers: 2, Errors: 1}},
		"the older dialect":              {legacy + "\n" + legacyFault + "\n", client.Tally{Answers: 2, Errors: 1}},
		"a long line":                    {strings.Repeat("x", 3*schema.MaxLine) + "\n" + ping(1), client.Tally{Answers: 2, Errors: 1}},
		"a line longer than the buffer":  {strings.Repeat("x", 200<<10) + "\n" + ping(1), client.Tally{Answers: 2, Errors: 1}},
		"ten thousand":                   {pings(10_000), client.Tally{Answers: 10_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connected(t, answerAll)
			var out bytes.Buffer
			got, err := c.Stream(testkit.Context(t), strings.NewReader(tt.in), &out)
			if err != nil || got != tt.want {
				t.Errorf("tally %+v, error %v, want %+v", got, err, tt.want)
			}
			if n := bytes.Count(out.Bytes(), []byte("\n")); n != tt.want.Answers {
				t.Errorf("%d lines, want %d", n, tt.want.Answers)
			}
			for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
				if tt.want.Answers == 10_000 && !strings.Contains(line, fmt.Sprintf(`"causation":"p-%d"`, i)) {
					t.Fatalf("line %d is %s", i, line)
				}
			}
		})
	}
}

// TestStreamFrames: frames are copied unchanged, and their kind is found in any spelling.
func TestStreamFrames(t *testing.T) {
	t.Parallel()
	frames := []struct {
		line string
		want client.Tally
	}{
		{`{"kind":"reply","type":"A.B","data":{"kind":"error"},"metadata":{"id":"1","timestamp":1}}`, client.Tally{Answers: 1}},
		{`{ "type" : "A.B" , "kind" : "error" , "data" : {"code":500,"message":"x"} , "metadata" : {"id":"1","timestamp":1} }` + "\r", client.Tally{Answers: 1, Errors: 1}},
		{`{"k\u0069nd":"\u0065rror","type":"A.B","data":{},"metadata":{"id":"1","timestamp":1}}`, client.Tally{Answers: 1, Errors: 1}},
		{`{"type":"error","name":"A.B","payload":{"message":"x","code":"TIMEOUT"}}`, client.Tally{Answers: 1, Errors: 1}},
		{`{"name":"A.B","type":"error","payload":1}`, client.Tally{Answers: 1, Errors: 1}},
		{`{"type":"response","name":"A.B","payload":"error"}`, client.Tally{Answers: 1}},
		{`{"kind":"event","type":"A.B","data":{"kind":"error"},"metadata":{"id":"1","timestamp":1}}`, client.Tally{}},
		{`not JSON`, client.Tally{}},
	}
	for _, tt := range frames {
		c := connected(t, func(conn access.Lines) {
			_, _ = conn.Next()
			_, _ = io.WriteString(conn, tt.line) // the client adds the newline
		})
		var out bytes.Buffer
		got, err := c.Stream(testkit.Context(t), strings.NewReader(""), &out)
		if err != nil || got != tt.want || out.String() != tt.line+"\n" {
			t.Errorf("%s:\ngot %+v, error %v, output %q", tt.line, got, err, out.String())
		}
	}
}

func TestStreamReportsMissingAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers int
		in      string
	}{
		"an answer is missing":     {2, pings(3)},
		"none came":                {0, ping(1)},
		"hung up in the middle":    {5, pings(100_000)},
		"blank lines do not count": {1, "\n" + ping(1) + "\n\n" + ping(2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connected(t, func(conn access.Lines) { answerSome(conn, tt.answers) })
			tally, err := c.Stream(testkit.Context(t), strings.NewReader(tt.in), io.Discard)
			if !errors.Is(err, fault.DaemonHungUp) {
				t.Errorf("error %v, want fault.DaemonHungUp", err)
			}
			if tally.Answers > tt.answers {
				t.Errorf("%d answers, want %d at most", tally.Answers, tt.answers)
			}
		})
	}
}

// TestStreamDoesNotDeadlock: the kernel sends more than all buffers hold before it reads, and the input is as large. A
// client that wrote all input before it read would hang.
func TestStreamDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	const n = 50_000
	c := connected(t, func(conn access.Lines) {
		for i := range n {
			if _, err := io.WriteString(conn, ping(i)+"\n"); err != nil {
				return
			}
		}
		for {
			if _, err := conn.Next(); err != nil {
				return
			}
		}
	})
	var out bytes.Buffer
	in := strings.Repeat(`{"kind":"event","type":"A.B","data":1}`+"\n", n)
	if _, err := c.Stream(testkit.Context(t), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(out.Bytes(), []byte("\n")); got != n {
		t.Errorf("%d lines, want %d", got, n)
	}
}

// TestStreamEndsWithTheKernel: if the kernel closes while the input is open and idle, that is an error, unless the
// stream requested the shutdown.
func TestStreamEndsWithTheKernel(t *testing.T) {
	t.Parallel()
	const shutdown = `{"kind":"command","type":"Syscall.Shutdown","data":{},"metadata":{"id":"s","timestamp":1}}`
	const legacy = `{"type":"command","name":"Syscall.Shutdown","payload":{}}`
	for said, want := range map[string]error{ping(1): fault.DaemonHungUp, shutdown: nil, legacy: nil} {
		in, feed, err := os.Pipe()
		testkit.Must(t, err)
		_, err = io.WriteString(feed, said+"\n")
		testkit.Must(t, err)
		c := connected(t, func(conn access.Lines) { answerSome(conn, 1) })
		tally, err := c.Stream(testkit.Context(t), in, io.Discard)
		if !errors.Is(err, want) || tally.Answers != 1 {
			t.Errorf("%s: tally %+v, error %v, want %v", said, tally, err, want)
		}
		testkit.Must(t, in.Close())
		testkit.Must(t, feed.Close())
	}
}

func TestStreamInterrupted(t *testing.T) {
	t.Parallel()
	in, feed, err := os.Pipe()
	testkit.Must(t, err)
	defer in.Close()
	defer feed.Close()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(testkit.Context(t))
	c := connected(t, func(conn access.Lines) {
		cancel(enough)
		_, _ = conn.Next()
	})
	if _, err := c.Stream(ctx, in, io.Discard); !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause of the context's end", err)
	}
}

func TestStreamOutputClosed(t *testing.T) {
	t.Parallel()
	in, feed, err := os.Pipe()
	testkit.Must(t, err)
	defer in.Close()
	defer feed.Close()
	_, err = io.WriteString(feed, ping(1)+"\n")
	testkit.Must(t, err)
	gone, out, err := os.Pipe()
	testkit.Must(t, err)
	testkit.Must(t, gone.Close())
	defer out.Close()
	c := connected(t, answerAll)
	if _, err := c.Stream(testkit.Context(t), in, out); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("error %v, want EPIPE", err)
	}
}

func TestStreamInputFails(t *testing.T) {
	t.Parallel()
	c := connected(t, answerAll)
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader(ping(1)+"\n"), iotest.ErrReader(broken))
	tally, err := c.Stream(testkit.Context(t), in, io.Discard)
	if !errors.Is(err, broken) || tally.Answers != 1 {
		t.Errorf("tally %+v, error %v, want the answer and the reader's error", tally, err)
	}
}
