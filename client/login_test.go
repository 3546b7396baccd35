package client_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// keyed is a kernel in signature mode, and the directory of its clients.
type keyed struct {
	places unixsock.Places
	dir    string
	known  access.KnownKernels
	stop   func()
}

// writeKey makes a key file, encrypted if passphrase is not empty, and returns its public line.
func writeKey(t testing.TB, path, passphrase string) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "test")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte(passphrase))
	}
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	public, err := ssh.NewPublicKey(private.Public())
	testkit.Must(t, err)
	return string(ssh.MarshalAuthorizedKey(public))
}

// startKeyed runs a kernel whose authorized_keys has the lines. Without any it is in open mode.
func startKeyed(t *testing.T, lines ...string) *keyed {
	t.Helper()
	places := tempPlaces(t)
	k := &keyed{places: places, dir: filepath.Dir(places.Dir)}
	k.known.Path = filepath.Join(k.dir, "known_kernels")
	k.run(t, "state", lines...)
	return k
}

// run starts a kernel with the state of that name.
func (k *keyed) run(t *testing.T, state string, lines ...string) {
	t.Helper()
	cfg := config.Config{
		RuntimeDir: k.places.Dir, StateDir: filepath.Join(k.dir, state), Origin: "https://test.local/",
		Limits: config.Limits{LineBytes: schema.MaxLine}, Ipc: config.Ipc{Mailbox: 50},
	}
	if len(lines) > 0 {
		cfg.AuthorizedKeys = filepath.Join(k.dir, "authorized_keys")
		testkit.Must(t, os.WriteFile(cfg.AuthorizedKeys, []byte(strings.Join(lines, "")), 0o600))
	}
	d := daemon.New(cfg, nil, slog.New(slog.DiscardHandler))
	testkit.Must(t, d.Open(testkit.Context(t)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(d.Run(ctx), d.Close()) }()
	k.stop = sync.OnceFunc(func() {
		cancel()
		testkit.Must(t, <-ended)
	})
	t.Cleanup(k.stop)
}

func (k *keyed) options(identity string) client.Options {
	return client.Options{RuntimeDir: k.places.Dir, Patience: testkit.Patience, Keys: client.Keys{Identity: identity, Known: k.known}}
}

// dialAs connects with the key of o, and closes the connection after the test.
func (k *keyed) dialAs(t testing.TB, o client.Options) (*client.Client, error) {
	t.Helper()
	c, err := client.Dial(testkit.Context(t), o)
	if err == nil {
		t.Cleanup(func() { testkit.Must(t, c.Close()) })
	}
	return c, err
}

// refusedLogin returns the fault.AuthLogin in err. Unless reason is empty, it must be the cause.
func refusedLogin(t testing.TB, err error, reason fault.ID) *fault.Fault {
	t.Helper()
	e := fault.Of(err)
	if e.ID != fault.AuthLogin || reason != "" && !errors.Is(err, reason) {
		t.Fatalf("got %v, want a login refused for %q", err, reason)
	}
	return e
}

// TestDialWithAKey: a client logs in with its key, reports its identity, and stores the kernel's key with one notice;
// calls and streams work.
func TestDialWithAKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine, agents := filepath.Join(dir, "mine"), filepath.Join(dir, "agents")
	k := startKeyed(t, writeKey(t, mine, ""), `allow="Memory.*" `+writeKey(t, agents, ""))
	var notices []string
	for range 2 {
		for path, pid := range map[string]int64{mine: 0, agents: 1} {
			o := k.options(path)
			o.Keys.Notice = func(text string) { notices = append(notices, text) }
			c, err := k.dialAs(t, o)
			testkit.Must(t, err)
			if who := c.Identity(); who.PID != pid || who.From != path || who.Host.IsZero() || who.Key.IsZero() {
				t.Errorf("the identity is %+v", who)
			}
			answer, err := c.Call(testkit.Context(t), schema.KindCommand, "Memory.Set", []byte(`{"key":"a","value":1}`))
			if err != nil || string(answer.Data) != `{"success":true}` {
				t.Errorf("got %s, %v", answer.Data, err)
			}
			s, err := k.dialAs(t, o)
			testkit.Must(t, err)
			var out strings.Builder
			tally, err := s.Stream(testkit.Context(t), strings.NewReader(`{"kind":"query","type":"Syscall.Ping","data":{"payload":1},"metadata":{"id":"p","timestamp":0}}`+"\n"), &out)
			if err != nil || tally != (client.Tally{Answers: 1}) || strings.Count(out.String(), "\n") != 1 {
				t.Errorf("streamed %s, %+v, %v", out.String(), tally, err)
			}
		}
	}
	if len(notices) != 1 || !strings.Contains(notices[0], k.places.KernelSocket) || !strings.Contains(notices[0], "SHA256:") {
		t.Errorf("notices %q", notices)
	}
}

// TestDialTriesKeys: after a refusal the next key is offered; a failed login names the offered keys and the accepted
// types.
func TestDialTriesKeys(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("PWOS_IDENTITY", "")
	t.Setenv("PWOS_CONFIG", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	testkit.Must(t, os.Mkdir(filepath.Join(dir, ".ssh"), 0o700))
	first := writeKey(t, filepath.Join(dir, ".ssh", "id_ed25519"), "")
	second := writeKey(t, filepath.Join(dir, ".ssh", "id_rsa"), "") // the file name does not tell the type
	k := startKeyed(t, second)
	c, err := k.dialAs(t, k.options(""))
	testkit.Must(t, err)
	if who := c.Identity(); who.From != filepath.Join(dir, ".ssh", "id_rsa") {
		t.Errorf("the identity is %+v", who)
	}
	if conn := extra(t, k); conn != nil {
		testkit.Must(t, c.Greet(testkit.Context(t), conn)) // with the key that logged in, not the first
	}

	testkit.Must(t, os.WriteFile(filepath.Join(k.dir, "authorized_keys"), []byte("# no key\n"), 0o600))
	_, err = k.dialAs(t, k.options(""))
	e := refusedLogin(t, err, "")
	failure := client.Answered(err)
	if failure == nil || failure.Code() != 401 {
		t.Errorf("got %v", err)
	}
	for _, line := range []string{first, second} {
		key, _, err := access.ParsePublicKey(line)
		testkit.Must(t, err)
		if text := e.Error(); !strings.Contains(text, key.Fingerprint()+" (ssh-ed25519, from ") || !strings.Contains(text, access.AcceptedTypes) {
			t.Errorf("the error is %q", text)
		}
	}

	testkit.Must(t, errors.Join(os.Remove(filepath.Join(dir, ".ssh", "id_rsa")), os.Remove(filepath.Join(dir, ".ssh", "id_ed25519"))))
	_, err = k.dialAs(t, k.options(""))
	if e := refusedLogin(t, err, fault.AuthNoIdentity); !strings.Contains(e.Error(), "ssh-keygen") || !strings.Contains(e.Error(), access.AcceptedTypes) {
		t.Errorf("the error is %q", e)
	}
	t.Setenv("PWOS_IDENTITY", filepath.Join(dir, "named"))
	testkit.Must(t, os.WriteFile(filepath.Join(k.dir, "authorized_keys"), []byte(writeKey(t, filepath.Join(dir, "named"), "")), 0o600))
	_, err = k.dialAs(t, k.options(""))
	testkit.Must(t, err)
}

// extra is another connection to the kernel, before its prologue.
func extra(t testing.TB, k *keyed) *unixsock.Conn {
	t.Helper()
	nc, err := unixsock.Dial(testkit.Context(t), k.places.KernelSocket)
	testkit.Must(t, err)
	t.Cleanup(func() { nc.Close() })
	conn, err := unixsock.NewConn(nc, schema.OsMessage, schema.MaxLine)
	testkit.Must(t, err)
	return conn
}

// TestDialAsksForAPassphrase: the user types a passphrase once for any number of connections.
func TestDialAsksForAPassphrase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	k := startKeyed(t, writeKey(t, path, "open sesame"))
	asked := 0
	o := k.options(path)
	o.Keys.Passphrase = func(_ context.Context, of string) ([]byte, error) {
		if asked++; of != path {
			t.Errorf("asked for the passphrase of %s", of)
		}
		return []byte("open sesame"), nil
	}
	c, err := k.dialAs(t, o)
	testkit.Must(t, err)
	testkit.Must(t, c.Greet(testkit.Context(t), extra(t, k)))
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	o.Keys.Passphrase = nil
	_, err = k.dialAs(t, o)
	refusedLogin(t, err, fault.AuthKeyFile)
}

// serveAgent serves an ssh-agent's socket with handle until the test ends, and returns its path.
func serveAgent(t *testing.T, handle func(net.Conn)) (socket string) {
	t.Helper()
	dir := filepath.Dir(tempPlaces(t).Dir)
	ln, err := net.Listen("unix", filepath.Join(dir, "agent.sock"))
	testkit.Must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				handle(conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		serving.Wait()
	})
	return ln.Addr().String()
}

// TestDialStopsTryingKeys: a bounded number of an agent's keys is offered, and the error names the others.
func TestDialStopsTryingKeys(t *testing.T) {
	keys := agent.NewKeyring()
	for range 9 {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		testkit.Must(t, err)
		testkit.Must(t, keys.Add(agent.AddedKey{PrivateKey: private}))
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PWOS_IDENTITY", "")
	t.Setenv("SSH_AUTH_SOCK", serveAgent(t, func(conn net.Conn) { _ = agent.ServeAgent(keys, conn) }))
	k := startKeyed(t, "# nobody\n")
	_, err := k.dialAs(t, k.options(""))
	if text := refusedLogin(t, err, "").Error(); strings.Count(text, "from ssh-agent)") != 6 || strings.Count(text, "name it with --identity") != 3 {
		t.Errorf("the error is %q", text)
	}
	// An agent that hangs up is not taken for a kernel that hangs up, which Dial would try again.
	t.Setenv("SSH_AUTH_SOCK", serveAgent(t, func(net.Conn) {}))
	o := k.options("")
	o.Patience = time.Hour
	_, err = k.dialAs(t, o)
	refusedLogin(t, err, "")
}
