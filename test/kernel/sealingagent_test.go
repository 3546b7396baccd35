package kernel_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// sshAgent is an ssh-agent whose signing the test controls.
type sshAgent struct {
	agent.ExtendedAgent
	mu   sync.Mutex
	sign func() error // nil: it signs
}

func newAgent(t *testing.T, keys ...any) *sshAgent {
	t.Helper()
	a := &sshAgent{ExtendedAgent: agent.NewKeyring().(agent.ExtendedAgent)}
	for _, key := range keys {
		testkit.Must(t, a.Add(agent.AddedKey{PrivateKey: key}))
	}
	return a
}

func (a *sshAgent) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	a.mu.Lock()
	sign := a.sign
	a.mu.Unlock()
	if sign != nil {
		if err := sign(); err != nil {
			return nil, err
		}
	}
	return a.ExtendedAgent.SignWithFlags(key, data, flags)
}

func (a *sshAgent) signs(how func() error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sign = how
}

// serve runs the agent at a socket, and returns the configuration of a kernel that uses it.
func (a *sshAgent) serve(t *testing.T) func(*config.Config) {
	t.Helper()
	return serveAgent(t, func(conn net.Conn) { _ = agent.ServeAgent(a, conn) }) // it ends when the client disconnects
}

// serveAgent answers a kernel's requests to its ssh-agent with handle. All goroutines end with the test.
func serveAgent(t *testing.T, handle func(net.Conn)) func(*config.Config) {
	t.Helper()
	path := filepath.Join(testkit.Dir(t), "agent")
	listener, err := net.Listen("unix", path)
	testkit.Must(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		err := listener.Close()
		all.Wait()
		if err != nil {
			t.Error(err)
		}
	})
	return func(cfg *config.Config) { cfg.Crypto.AgentSocket = path }
}

func edKey(t *testing.T) *ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	return &private
}

func curveKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	return private
}

// TestSealThroughTheAgent seals with a key that the kernel never has, after one that cannot seal.
func TestSealThroughTheAgent(t *testing.T) {
	t.Parallel()
	c := start(t, newAgent(t, curveKey(t), edKey(t)).serve(t)).dial(t)
	var s sealed
	c.call("Crypto.Seal", `{"plaintext":"a"}`, &s)
	if got := c.open(s.Value); got != "a" {
		t.Errorf("opened as %q", got)
	}
}

// TestHangingAgent has an agent that reads requests and does not answer. A caller that seals gets an error in bounded time;
// others are not affected, and the kernel ends normally.
func TestHangingAgent(t *testing.T) {
	t.Parallel()
	hangs := func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<10)); _, _ = conn.Read(make([]byte, 1)) } // until the kernel disconnects
	d := start(t, serveAgent(t, hangs))
	sealer, other := d.dial(t), d.dial(t)
	sealer.send("Crypto.Seal", `{"plaintext":"a"}`, "")
	for range 100 {
		other.call("Memory.Set", `{"key":"a","value":1}`, nil)
		other.call("Clock.Get", `{}`, nil)
	}
	a := sealer.next()
	if f := sealer.fault(a); f.Code != 504 || !strings.Contains(string(a.Data), "ssh-agent") {
		t.Errorf("got %s", a.Data)
	}
	other.send("Crypto.Derive", `{}`, "")
	d.stop() // while the agent gets another request
}

// TestSlowAgent: calls that arrived while a person looked for the key to touch are answered when it was touched.
func TestSlowAgent(t *testing.T) {
	t.Parallel()
	a := newAgent(t, edKey(t))
	touched := make(chan struct{})
	asked := make(chan struct{}, 16)
	a.signs(func() error { asked <- struct{}{}; <-touched; return nil })
	d := start(t, a.serve(t))
	first, second := d.dial(t), d.dial(t)
	first.send("Crypto.Seal", `{"plaintext":"a"}`, "")
	select {
	case <-asked:
	case <-time.After(testkit.Patience):
		t.Fatal("the kernel has not asked the ssh-agent")
	}
	second.send("Crypto.Derive", `{}`, "")
	close(touched)
	for _, c := range []*client{first, second} {
		if a := c.next(); a.Kind != "reply" {
			t.Errorf("got %s", a.Data)
		}
	}
}

// TestAgentsThatDoNotSeal: each is refused with its fix, and a kernel whose agent works again can seal.
func TestAgentsThatDoNotSeal(t *testing.T) {
	t.Parallel()
	locked := newAgent(t, edKey(t))
	testkit.Must(t, locked.Lock([]byte("x")))
	refusing := newAgent(t, edKey(t))
	refusing.signs(func() error { return errors.New("its user says no") })
	for _, tt := range []struct {
		name   string
		from   *sshAgent
		code   int
		text   string
		repair func()
	}{
		{"locked", locked, 422, "ssh-add -X", func() { _ = locked.Unlock([]byte("x")) }},
		{"empty", newAgent(t), 422, "ssh-add", nil},
		{"a key that signs differently", newAgent(t, curveKey(t)), 422, "ecdsa-sha2-nistp256 cannot seal", nil},
		{"refusing", refusing, 502, "refuses to sign", func() { refusing.signs(nil) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, tt.from.serve(t)).dial(t)
			a := c.ask("Crypto.Seal", `{"plaintext":"sekret"}`)
			if f := c.fault(a); f.Code != tt.code || !strings.Contains(string(a.Data), tt.text) || !strings.Contains(f.Message, "crypto.identity") ||
				strings.Contains(string(a.Data), "sekret") {
				t.Errorf("got %s, want %d with %q", a.Data, tt.code, tt.text)
			}
			if tt.repair == nil {
				return
			}
			tt.repair()
			for limit := time.Now().Add(testkit.Patience); c.ask("Crypto.Seal", `{"plaintext":"a"}`).Kind != "reply"; {
				if time.Now().After(limit) {
					t.Fatal("the kernel does not seal after the repair")
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}

// TestKeyFilesThatDoNotSeal: the kernel runs, and a caller that seals gets the error of the file, without its path.
func TestKeyFilesThatDoNotSeal(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T, key any, passphrase string) string {
		block, err := ssh.MarshalPrivateKey(key, "")
		if passphrase != "" {
			block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
		}
		testkit.Must(t, err)
		path := filepath.Join(t.TempDir(), "mine")
		testkit.Must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
		return path
	}
	open := file(t, edKey(t), "")
	testkit.Must(t, os.Chmod(open, 0o644))
	for name, tt := range map[string]struct{ path, text string }{
		"not there":                    {filepath.Join(t.TempDir(), "mine"), "there is no key file mine"},
		"a key that signs differently": {file(t, curveKey(t), ""), "ecdsa-sha2-nistp256 cannot seal"},
		"with a passphrase":            {file(t, edKey(t), "x"), "has a passphrase"},
		"open to others":               {open, "chmod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, withIdentity(tt.path)).dial(t)
			a := c.ask("Crypto.Seal", `{"plaintext":"sekret"}`)
			if f := c.fault(a); f.Code != 422 || !strings.Contains(string(a.Data), tt.text) || strings.Contains(string(a.Data), filepath.Dir(tt.path)) {
				t.Errorf("got %s, want it to say %q", a.Data, tt.text)
			}
			c.call("Memory.Set", `{"key":"a","value":1}`, nil)
		})
	}
}
