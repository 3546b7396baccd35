package scripts_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestReferenceClient: the client of the specifications' reference implementation is served in the directory that it uses
// (docs/sdk.md), on both sockets, in both of its dialects. It sends a command Syscall.Authenticate and all its frames
// before it reads, and then half-closes.
func TestReferenceClient(t *testing.T) {
	t.Parallel()
	p := settle(t)
	dir := p.Path("promptware")
	testkit.Must(t, os.Mkdir(dir, 0o700)) // as the client does
	p.pwos(t, "--runtime-dir="+dir, "call", "Syscall.Ping", "payload=1")
	defer p.pwos(t, "--runtime-dir="+dir, "shutdown", "--no-spawn")
	for _, socket := range []string{"kernel.sock", "events.sock"} {
		for name, tt := range map[string]struct{ says, hears string }{
			"OsMessage": {
				`{"kind":"command","type":"Syscall.Authenticate","data":{},"metadata":{"id":"GZkaYcAB","timestamp":1767600000000}}
{"kind":"command","type":"Memory.Set","data":{"key":"a","value":1},"metadata":{"id":"m1","timestamp":0}}
{"kind":"query","type":"Memory.Get","data":{"key":"a"},"metadata":{"id":"m2","timestamp":0}}
`, `^{[^\n]*Syscall.Authenticate[^\n]*\n{"kind":"reply","type":"Memory.Set","data":{"success":true}[^\n]*\n{"kind":"reply","type":"Memory.Get","data":1[^\n]*\n$`,
			},
			"OsEvent": {
				`{"type":"command","name":"Syscall.Authenticate","payload":{},"metadata":{"id":"GZkaYcAB","timestamp":1767600000000}}
{"type":"command","name":"Memory.Set","payload":{"key":"a","value":1}}
{"type":"query","name":"Memory.Get","payload":{"key":"a"}}
`, `^{[^\n]*Syscall.Authenticate[^\n]*\n{"type":"response","name":"Memory.Set","payload":{"success":true}[^\n]*\n{"type":"response","name":"Memory.Get","payload":1[^\n]*\n$`,
			},
		} {
			got, err := exchange(filepath.Join(dir, socket), tt.says)
			if err != nil || !regexp.MustCompile(tt.hears).MatchString(got) {
				t.Errorf("%s on %s: %v, the client received\n%s", name, socket, err, got)
			}
		}
	}
}

// exchange sends everything to a socket, half-closes, and returns everything that it receives.
func exchange(socket, says string) (hears string, err error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprint(conn, says); err != nil {
		return "", err
	}
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		return "", err
	}
	out, err := io.ReadAll(conn)
	return string(out), err
}
