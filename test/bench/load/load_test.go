package load_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/test/bench/load"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// echoMode among the arguments makes this test binary the echo process.
const echoMode = "be-the-echo"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == echoMode {
		os.Exit(load.EchoMain(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(testkit.Main(m))
}

// kernel listens like a kernel and answers with answer.
func kernel(t *testing.T, answer func(*schema.Message, *schema.Stamp) []byte) (socket string) {
	t.Helper()
	dir := testkit.Dir(t)
	socket = filepath.Join(dir, "kernel.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	testkit.Must(t, err)
	server := unixsock.NewServer(unixsock.ServerConfig{
		Endpoints: []unixsock.Endpoint{{Listener: ln, Dialect: schema.OsMessage, MaxLine: schema.MaxLine}},
		Handler: func(_ context.Context, conn *unixsock.Conn, _ access.Peer, done func()) {
			defer done()
			stamps := schema.NewStamper()
			for {
				line, err := conn.Next()
				if err != nil {
					return
				}
				m, _ := schema.Decode(line, schema.OsMessage)
				st := stamps.Next(time.Now())
				if _, err := conn.Write(answer(&m, &st)); err != nil {
					return
				}
			}
		},
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	t.Cleanup(func() {
		testkit.Must(t, server.Shutdown(context.Background()))
		testkit.Must(t, <-served)
	})
	return socket
}

func startEcho(t *testing.T) *load.EchoProcess {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	echo, err := load.StartEcho(context.Background(), self, echoMode)
	testkit.Must(t, err)
	t.Cleanup(func() {
		testkit.Must(t, echo.Close())
		if _, err := os.Stat(filepath.Dir(echo.Socket)); err == nil {
			t.Errorf("%s is left", filepath.Dir(echo.Socket))
		}
	})
	return echo
}

func TestRun(t *testing.T) {
	t.Parallel()
	socket := kernel(t, func(m *schema.Message, st *schema.Stamp) []byte {
		return schema.AppendReply(nil, m, m.Data, st)
	})
	echo := startEcho(t)
	for _, w := range load.Workloads() {
		found, ok := load.Find(w.Name)
		if !ok || found.Name != w.Name || w.Description == "" {
			t.Errorf("%s is not found, or has no description", w.Name)
		}
		r, err := load.Run(context.Background(), w, load.Config{
			Kernel: socket, Echo: echo.Socket, Duration: 20 * time.Millisecond, Rounds: 2, Lean: w.Connections == 1,
		})
		testkit.Must(t, err)
		for name, side := range map[string]load.Side{"kernel": r.Kernel, "echo": r.Echo} {
			if side.PerSecond <= 0 || side.P50 <= 0 || side.P99 < side.P50 {
				t.Errorf("%s: %s %+v", w.Name, name, side)
			}
		}
		if r.Ratio() <= 0 {
			t.Errorf("%s: ratio %v", w.Name, r.Ratio())
		}
	}
}

// Without an echo the kernel alone is measured. The caller may log in on each connection.
func TestRunAlone(t *testing.T) {
	t.Parallel()
	socket := kernel(t, func(m *schema.Message, st *schema.Stamp) []byte { return schema.AppendReply(nil, m, m.Data, st) })
	w, _ := load.Find("ping-1")
	greeted := 0
	r, err := load.Run(context.Background(), w, load.Config{
		Kernel: socket, Duration: time.Millisecond, Rounds: 2,
		Greet: func(ctx context.Context, conn access.Lines) error {
			greeted++
			return access.ClientPrologue(ctx, conn, access.AnswerOpen)
		},
	})
	if err != nil || r.Kernel.PerSecond <= 0 || r.Echo != (load.Side{}) || greeted != 2 {
		t.Errorf("%+v, %v, greeted %d times; want rates of the kernel alone, each connection greeted", r, err, greeted)
	}
}

// A fast wrong answer does not count.
func TestRunChecksAnswers(t *testing.T) {
	t.Parallel()
	echo := startEcho(t)
	for name, answer := range map[string]func(*schema.Message, *schema.Stamp) []byte{
		"an error": func(m *schema.Message, st *schema.Stamp) []byte {
			return schema.AppendError(nil, m, fault.KernelInternal.New("no"), st)
		},
		"another message's answer": func(m *schema.Message, st *schema.Stamp) []byte {
			m.Meta.ID = "99999999"
			return schema.AppendReply(nil, m, m.Data, st)
		},
	} {
		for _, w := range load.Workloads() {
			for _, lean := range []bool{false, true} {
				_, err := load.Run(context.Background(), w, load.Config{
					Kernel: kernel(t, answer), Echo: echo.Socket, Duration: time.Millisecond, Rounds: 1, Lean: lean,
				})
				if err == nil || !strings.Contains(err.Error(), "wrong answer to message") {
					t.Errorf("%s, %s, lean %t: error %v, want one about a wrong answer", name, w.Name, lean, err)
				}
			}
		}
	}
}

// Run decodes every answer, including later ones, unless it is lean.
func TestRunDecodesAnswers(t *testing.T) {
	t.Parallel()
	echo := startEcho(t)
	broken := func(m *schema.Message, st *schema.Stamp) []byte {
		line := schema.AppendReply(nil, m, m.Data, st)
		if m.Meta.ID != "00000000" {
			line[len(line)-2] = ' ' // in the place of the last brace
		}
		return line
	}
	w, _ := load.Find("ping-1")
	for _, lean := range []bool{false, true} {
		run := func() error {
			_, err := load.Run(context.Background(), w, load.Config{
				Kernel: kernel(t, broken), Echo: echo.Socket, Duration: 20 * time.Millisecond, Rounds: 1, Lean: lean,
			})
			return err
		}
		err := run()
		for end := time.Now().Add(testkit.Patience); err == nil && !lean && time.Now().Before(end); { // a busy machine may get the first answer only
			err = run()
		}
		if (err == nil) != lean {
			t.Errorf("lean %t: error %v", lean, err)
		}
	}
}

// The echo is checked too: a kernel in its place sends other lines.
func TestRunChecksTheEcho(t *testing.T) {
	t.Parallel()
	socket := kernel(t, func(m *schema.Message, st *schema.Stamp) []byte { return schema.AppendReply(nil, m, m.Data, st) })
	w, _ := load.Find("ping-1")
	_, err := load.Run(context.Background(), w, load.Config{Kernel: socket, Echo: socket, Duration: time.Millisecond, Rounds: 1})
	if err == nil || !strings.Contains(err.Error(), "wrong answer") {
		t.Errorf("error %v, want one about a wrong answer", err)
	}
}

// An interruption also ends a run that receives nothing, or an incomplete line.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	echo := startEcho(t)
	for name, part := range map[string]func(answer []byte) []byte{
		"answers": func(answer []byte) []byte { return answer },
		"halves":  func(answer []byte) []byte { return answer[:len(answer)/2] },
		"silence": func([]byte) []byte { return nil },
	} {
		for _, work := range []string{"ping-16", "get-16"} {
			enough := errors.New("enough")
			ctx, cancel := context.WithCancelCause(context.Background())
			socket := kernel(t, func(m *schema.Message, st *schema.Stamp) []byte {
				cancel(enough)
				return part(schema.AppendReply(nil, m, m.Data, st))
			})
			w, _ := load.Find(work)
			_, err := load.Run(ctx, w, load.Config{Kernel: socket, Echo: echo.Socket, Duration: time.Hour, Rounds: 1})
			if !errors.Is(err, enough) {
				t.Errorf("%s, %s: error %v, want the cause of the context's end", work, name, err)
			}
		}
	}
}

func TestEchoMainUsage(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	if code := load.EchoMain(nil, strings.NewReader(""), io.Discard, &said); code != 2 || said.Len() == 0 {
		t.Errorf("exit status %d, stderr %q", code, said.String())
	}
	if code := load.EchoMain([]string{"/no/such/directory/echo.sock"}, strings.NewReader(""), io.Discard, &said); code != 1 {
		t.Errorf("exit status %d, want 1", code)
	}
}

func TestStartEchoFails(t *testing.T) {
	t.Parallel()
	if _, err := load.StartEcho(context.Background(), "/bin/true"); err == nil {
		t.Error("no error where nothing listens")
	}
}
