package client_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestMain(m *testing.M) {
	daemon.Shim()
	if mode := os.Getenv(fakeMode); mode != "" {
		os.Exit(fakeDaemon(mode))
	}
	os.Exit(testkit.Main(m))
}

// tempPlaces returns places in a directory that does not exist yet. Its path is short, as those of sockets must be.
func tempPlaces(t testing.TB) unixsock.Places {
	t.Helper()
	dir := testkit.Dir(t)
	return unixsock.PlacesIn(filepath.Join(dir, "run"))
}

// serveKernel listens on the kernel's socket until the test ends. It runs the prologue on each connection, then serve.
func serveKernel(t testing.TB, places unixsock.Places, serve func(access.Lines)) {
	t.Helper()
	testkit.Must(t, unixsock.EnsurePrivateDir(places.Dir))
	stop, err := startKernel(places, serve)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, stop()) })
}

func startKernel(places unixsock.Places, serve func(access.Lines)) (stop func() error, err error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: places.KernelSocket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	server := unixsock.NewServer(unixsock.ServerConfig{
		Endpoints: []unixsock.Endpoint{{Listener: ln, Dialect: schema.OsMessage, MaxLine: schema.MaxLine}},
		Handler:   func(_ context.Context, conn *unixsock.Conn, _ access.Peer, done func()) { serve(conn); done() },
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			return err
		}
		return <-served
	}, nil
}

// answerAll serves one connection: it returns each message's data, until the client half-closes.
func answerAll(conn access.Lines) { answerSome(conn, -1) }

// answerSome does what answerAll does, and hangs up after n answers.
func answerSome(conn access.Lines, n int) {
	stamps := schema.NewStamper()
	for ; n != 0; n-- {
		line, err := conn.Next()
		tooLong := errors.Is(err, schema.ErrLineTooLong)
		if err != nil && !tooLong {
			return
		}
		m, refused := schema.Decode(line, schema.OsMessage)
		if tooLong {
			refused = schema.TooLong(conn.LineLimit())
		}
		st := stamps.Next(time.Now())
		var out []byte
		switch {
		case refused != nil:
			out = schema.AppendError(nil, &m, refused, &st)
		case m.Type == "No.Such":
			unknown := fault.WireUnknownSyscall.New("no such syscall").Because(fault.MemoryNotFound.New("it is not registered"))
			out = schema.AppendError(nil, &m, unknown, &st)
		case m.Kind == schema.KindEvent:
			continue
		default:
			out = schema.AppendReply(nil, &m, m.Data, &st)
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// dial connects to a kernel that the test has started.
func dial(t testing.TB, places unixsock.Places) *client.Client {
	t.Helper()
	c, err := client.Dial(testkit.Context(t), client.Options{RuntimeDir: places.Dir, Patience: testkit.Patience})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, c.Close()) })
	return c
}

// connected is a Client of a kernel whose connections serve handles.
func connected(t testing.TB, serve func(access.Lines)) *client.Client {
	t.Helper()
	places := tempPlaces(t)
	serveKernel(t, places, serve)
	return dial(t, places)
}
