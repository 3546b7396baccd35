package kernel_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// programsRun reports whether tools may be programs here, since they are hosted only on Linux.
const programsRun = runtime.GOOS == "linux"

// The tools below the root.
const (
	moduleTool  = "os/tools/module"
	programTool = "os/tools/program"
)

// originOf returns the origin of the agent with that letter.
func originOf(name string) string { return "https://" + name + ".example/" }

// scenery is the environment of kernels: a root, a server, and the keys for logins. It is the same for all of them.
type scenery struct {
	dir    string
	server *httptest.Server
	keys   map[string]*access.Signer
	lines  []string // of authorized_keys
}

func newScenery(t *testing.T, names ...string) *scenery {
	t.Helper()
	s := &scenery{dir: t.TempDir(), server: httptest.NewUnstartedServer(http.HandlerFunc(elsewhere)), keys: map[string]*access.Signer{}}
	s.server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, requestsOn{}, new(atomic.Int64))
	}
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	files := map[string]string{
		"ca.pem":                 string(authority),
		"root/one.md":            "---\nname: one\ntools: [./tools/module]\nskills: [./two.md]\n---\nfirst\n",
		"root/two.md":            "---\nname: two\n---\nsecond\n",
		"root/long.md":           "---\nname: long\n---\n" + strings.Repeat("a line of text\n", 2000),
		"root/broken.md":         "---\ntools: 1\n---\n",
		"root/deep/three.md":     "beside nothing\n",
		"root/tools/module":      string(module()),
		"root/tools/module.json": `{"description":"always says the same"}`,
		// What a program sees of its caller and its environment.
		"root/tools/program": "#!/bin/sh\nprintf '{\"pid\":%s,\"agent\":\"%s\",\"at\":\"%s\",\"home\":\"%s\",\"around\":\"%s\",\"input\":%s}' " +
			"\"$PWOS_PID\" \"$PWOS_AGENT_ID\" \"$PWD\" \"$HOME\" \"$(echo *)\" \"$(cat)\"\n",
	}
	for name, text := range files {
		name = filepath.Join(s.dir, name)
		testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o700)))
	}
	for _, name := range append(names, "operator") {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		testkit.Must(t, err)
		raw, err := ssh.NewSignerFromSigner(private)
		testkit.Must(t, err)
		if s.keys[name], err = access.NewSigner(raw, name); err != nil {
			t.Fatal(err)
		}
		line := s.keys[name].Key().String()
		if name != "operator" {
			line = fmt.Sprintf(`allow="*",agent="agent",origin=%q `, originOf(name)) + line
		}
		s.lines = append(s.lines, line)
	}
	return s
}

// start starts a kernel that admits only keys.
func (s *scenery) start(t *testing.T) *running {
	t.Helper()
	return start(t, func(cfg *config.Config) {
		keys := filepath.Join(filepath.Dir(cfg.RuntimeDir), "authorized_keys")
		testkit.Must(t, os.WriteFile(keys, []byte(strings.Join(s.lines, "\n")+"\n"), 0o600))
		cfg.AuthorizedKeys, cfg.Root, cfg.Origin = keys, filepath.Join(s.dir, "root"), "https://test.local/"
		cfg.HTTP.Allow, cfg.HTTP.CAFile = []string{"127.0.0.0/8"}, filepath.Join(s.dir, "ca.pem")
		cfg.Ingest.Unpinned, cfg.Tools.Programs = true, programsRun
		cfg.Agents.JournalBytesPerSecond, cfg.Agents.JournalBurstBytes = 1<<40, 1<<40 // otherwise the speed of the machine would distinguish the two
	})
}

// login returns a connection that logs in with the key of that name.
func (s *scenery) login(t *testing.T, d *running, name string) *client {
	t.Helper()
	path := filepath.Join(d.cfg.RuntimeDir, "kernel.sock")
	socket, err := access.SocketName(path)
	testkit.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	nc, err := unixsock.Dial(ctx, path)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	conn, err := unixsock.NewConn(nc, schema.OsMessage, schema.MaxLine)
	testkit.Must(t, err)
	err = access.ClientPrologue(ctx, conn, func(offer []byte, issued time.Time) ([]byte, error) {
		login := access.Login{
			Channel: access.Local{Socket: socket, PID: os.Getpid(), UID: os.Geteuid()}, Now: time.Now,
			Known: access.KnownKernels{Path: filepath.Join(filepath.Dir(d.cfg.RuntimeDir), "known_kernels")},
			Pick:  func(context.Context) (*access.Signer, error) { return s.keys[name], nil },
		}
		answer, err := login.Answer(ctx, offer, issued)
		if err != nil {
			return nil, err
		}
		return answer.Data, nil
	})
	testkit.Must(t, err)
	// The prologue is the only unsolicited frame of the kernel, so nothing after it has been read.
	return &client{t: t, conn: nc, lines: bufio.NewReaderSize(nc, 2*schema.MaxLine), shapes: make(map[string]*shape)}
}

// requestsOn is the context key of the request count of a connection to the server.
type requestsOn struct{}

// elsewhere is the server. It reports everything that it sees of a caller, including whether its connection or TLS session
// existed before, which would reveal another caller.
func elsewhere(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/again":
		http.Redirect(w, r, "/echo", http.StatusTemporaryRedirect)
	case path == "/none" || strings.HasSuffix(path, ".sig"):
		http.NotFound(w, r)
	case path == "/v1.2.3/remote.md":
		_, _ = io.WriteString(w, "---\nname: remote\n---\nfrom elsewhere\n")
	case strings.HasPrefix(path, "/big/"):
		_, _ = fmt.Fprintf(w, `"%s"`, strings.Repeat(filepath.Base(path), 20_000))
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller has disconnected
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "headers": r.Header, "body": len(body), "resumed": r.TLS.DidResume,
			"requests": r.Context().Value(requestsOn{}).(*atomic.Int64).Add(1),
		})
	}
}

// module returns a WASI module that writes a constant to its output.
func module() []byte {
	const wasi = "\x16wasi_snapshot_preview1\x08fd_write\x00\x00"
	said := `{"said":"always"}`
	sized := func(id byte, content string) string { return string([]byte{id, byte(len(content))}) + content }
	data := "\x08\x00\x00\x00" + string([]byte{byte(len(said)), 0, 0, 0}) + said // its address, and its length
	return []byte("\x00asm\x01\x00\x00\x00" +
		sized(1, "\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00") + // types: of fd_write, of _start
		sized(2, "\x01"+wasi) +
		sized(3, "\x01\x01") +
		sized(5, "\x01\x00\x01") + // a page of memory
		sized(7, "\x02\x06memory\x02\x00\x06_start\x00\x01") +
		sized(10, "\x01\x0e\x00\x41\x01\x41\x00\x41\x01\x41\xc0\x00\x10\x00\x1a\x0b") + // fd_write(1, 0, 1, 64)
		sized(11, "\x01\x00\x41\x00\x0b"+string([]byte{byte(len(data))})+data))
}
