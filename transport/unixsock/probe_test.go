package unixsock_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

const (
	prologueMessage = `{"kind":"command","type":"Syscall.Authenticate","data":{"scheme":"none"},"metadata":{"id":"1","timestamp":1}}` + "\n"
	prologueEvent   = `{"type":"command","name":"Syscall.Authenticate","payload":{"scheme":"none"}}` + "\n"
)

// say serves a socket that sends text on each connection and then waits.
func say(text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		serveRaw(t, path, func(conn net.Conn) {
			if _, err := conn.Write([]byte(text)); err == nil {
				waitEOF(conn)
			}
		})
	}
}

// occupants are files at a socket path, with the state that Probe returns.
var occupants = []struct {
	name string
	make func(t *testing.T, path string)
	want unixsock.Liveness
	says string // part of the error of Foreign
}{
	{"nothing", func(*testing.T, string) {}, unixsock.Absent, ""},
	{"stale socket", leaveStaleAt, unixsock.Stale, ""},
	{"daemon", say(prologueMessage), unixsock.Alive, ""},
	{"daemon of the older dialect", say(prologueEvent), unixsock.Alive, ""},
	{"daemon that sends more at once", say(prologueMessage + prologueMessage), unixsock.Alive, ""},
	{"listener that closes at once", func(t *testing.T, path string) {
		serveRaw(t, path, func(net.Conn) {})
	}, unixsock.Foreign, "prologue"},
	{"listener of another protocol", say("220 mail.example ESMTP\r\n"), unixsock.Foreign, "prologue"},
	{"listener that sends another frame", say(strings.Replace(prologueEvent, "Authenticate", "Ping", 1)), unixsock.Foreign, "prologue"},
	{"listener that sends a response first", say(strings.Replace(prologueEvent, "command", "response", 1)), unixsock.Foreign, "prologue"},
	{"listener whose line never ends", say(strings.Repeat("x", 64<<10)), unixsock.Foreign, "prologue"},
	{"listener that stops in the middle", func(t *testing.T, path string) {
		serveRaw(t, path, func(conn net.Conn) { _, _ = conn.Write([]byte(prologueMessage[:40])) })
	}, unixsock.Foreign, "prologue"},
	{"regular file", func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("precious"), 0o600)) }, unixsock.Foreign, "not a socket"},
	{"directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, unixsock.Foreign, "directory"},
	{"FIFO", func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }, unixsock.Foreign, "not a socket"},
	{"symbolic link to a daemon", func(t *testing.T, path string) {
		say(prologueMessage)(t, path+"x")
		must(t, os.Symlink(path+"x", path))
	}, unixsock.Foreign, "symbolic link"},
	{"symbolic link to a stale socket", func(t *testing.T, path string) {
		leaveStale(t, path+"x")
		must(t, os.Symlink(path+"x", path))
	}, unixsock.Foreign, "symbolic link"},
	{"dangling symbolic link", func(t *testing.T, path string) { must(t, os.Symlink("gone", path)) }, unixsock.Foreign, "symbolic link"},
	{"datagram socket", func(t *testing.T, path string) {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		must(t, err)
		t.Cleanup(func() { must(t, conn.Close()) })
	}, unixsock.Foreign, "another type"},
}

func TestProbe(t *testing.T) {
	t.Parallel()
	for _, tt := range occupants {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := privatePlaces(t).KernelSocket
			tt.make(t, path)
			got, err := unixsock.Probe(t.Context(), path)
			if got != tt.want {
				t.Errorf("got %d, want %d (%v)", got, tt.want, err)
			}
			if errors.Is(err, fault.PlaceServed) != (tt.want == unixsock.Alive) || errors.Is(err, fault.PlaceOccupied) != (tt.want == unixsock.Foreign) {
				t.Fatalf("got error %v for state %d", err, tt.want)
			}
			if tt.want == unixsock.Absent || tt.want == unixsock.Stale {
				return
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %q, want one that names %s and says %q", err, path, tt.says)
			}
			if tt.want == unixsock.Alive && fault.Of(err).Detail("pid") != strconv.Itoa(os.Getpid()) {
				t.Errorf("the process is %d, not %s", os.Getpid(), fault.Of(err).Detail("pid"))
			}
		})
	}
}

// TestProbeOfASilentListener: a listener that accepts and sends nothing is Foreign: it may be a daemon that hangs.
func TestProbeOfASilentListener(t *testing.T) {
	t.Parallel()
	path := privatePlaces(t).KernelSocket
	say("")(t, path)
	got, err := unixsock.Probe(t.Context(), path)
	if got != unixsock.Foreign || err == nil {
		t.Errorf("got %d, %v, want Foreign", got, err)
	}
}

func TestProbeIsInterruptedByItsContext(t *testing.T) {
	t.Parallel()
	path := privatePlaces(t).KernelSocket
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	serveRaw(t, path, func(conn net.Conn) {
		cancel()
		waitEOF(conn)
	})
	if got, err := unixsock.Probe(ctx, path); !errors.Is(err, context.Canceled) || got == unixsock.Alive {
		t.Errorf("got %d, %v, want the context's error", got, err)
	}
}

func TestProbeUnreadableDirectory(t *testing.T) {
	t.Parallel()
	file := privatePlaces(t).KernelSocket
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := unixsock.Probe(t.Context(), file+"/kernel.sock"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want the file system's error", err)
	}
}
