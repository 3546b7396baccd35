package access_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// waitForSocket waits until a process listens at path.
func waitForSocket(t testing.TB, path string) {
	t.Helper()
	bound := time.NewTimer(10 * time.Second)
	defer bound.Stop()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		conn, err := net.Dial("unix", path)
		if err == nil {
			must(0, conn.Close())(t)
			return
		}
		select {
		case <-poll.C:
		case <-bound.C:
			t.Fatal(err)
		}
	}
}

const (
	soon  = 50 * time.Millisecond // for an agent that does not answer
	never = time.Hour             // for one that answers: a slow machine must not time it out
)

// loginThrough tries to log in with nothing but the agent at socket.
func loginThrough(t testing.TB, w *world, socket string, list, sign time.Duration) error {
	t.Helper()
	w.login.Identities = &access.Identities{AgentSocket: socket, ListTime: list, SignTime: sign}
	c := w.challenge(t)
	answer, err := w.login.Answer(t.Context(), c.Data(), c.Issued())
	if err != nil {
		if answer != nil {
			t.Errorf("the client answered: %s", answer.Data)
		}
		return err
	}
	_, err = c.Verify(answer.Data)
	return err
}

// TestAgentsThatHang: the client gives up at its deadline, whichever step the agent hangs in.
func TestAgentsThatHang(t *testing.T) {
	t.Parallel()
	hang := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for _, c := range []struct {
		name   string
		handle func(net.Conn)
		says   string
	}{
		{"says nothing", hang, "did not answer within"},
		{"sends half a message", func(conn net.Conn) { _, _ = conn.Write([]byte{0, 0}); hang(conn) }, "did not answer within"},
		{"announces more bytes than it sends", func(conn net.Conn) { _, _ = conn.Write([]byte{0, 0, 1, 0, 12}); hang(conn) }, "did not answer within"},
		{"promises too much", func(conn net.Conn) { _, _ = conn.Write([]byte{0xff, 0xff, 0xff, 0xff}); hang(conn) }, "does not list its keys"},
		{"hangs up", func(conn net.Conn) { _ = conn.Close() }, "does not list its keys"},
		{"answers something else", func(conn net.Conn) { _, _ = conn.Write([]byte{0, 0, 0, 1, 6}); hang(conn) }, "does not list its keys"},
		{"answers without end", func(conn net.Conn) {
			for {
				if _, err := conn.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "does not list its keys"},
		{"lists more keys than it sends", func(conn net.Conn) {
			_, _ = conn.Write(append(binary.BigEndian.AppendUint32(nil, 5), 12, 0xff, 0xff, 0xff, 0xff))
			hang(conn)
		}, "does not list its keys"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			patience := never
			if strings.Contains(c.says, "within") {
				patience = soon
			}
			err := loginThrough(t, newWorld(t, "ed25519"), serveAgent(t, c.handle), patience, never)
			if e := refused(t, err, fault.AuthNoIdentity); !strings.Contains(e.Message, c.says) {
				t.Errorf("%q does not say %q", e.Message, c.says)
			}
		})
	}
	t.Run("is not there", func(t *testing.T) {
		t.Parallel()
		refused(t, loginThrough(t, newWorld(t, "ed25519"), "/nowhere/agent.sock", never, never), fault.AuthNoIdentity)
	})
	t.Run("hangs when asked to sign", func(t *testing.T) {
		t.Parallel()
		f := newFakeAgent(t, "ed25519")
		done := make(chan struct{})
		f.sign = func(ssh.PublicKey, []byte, agent.SignatureFlags) (*ssh.Signature, error) {
			<-done
			return nil, errors.New("too late")
		}
		socket := f.serve(t)
		t.Cleanup(func() { close(done) })
		e := refused(t, loginThrough(t, newWorld(t, "ed25519"), socket, never, soon), fault.AuthAgentSilent)
		if e.Detail("key") != vectorKey(t, "ed25519").Fingerprint() {
			t.Errorf("the error names the key %q", e.Detail("key"))
		}
	})
	t.Run("until the caller has enough", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		socket := serveAgent(t, func(conn net.Conn) { cancel(enough); hang(conn) })
		_, err := (&access.Identities{AgentSocket: socket, ListTime: never}).Find(ctx)
		if !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("and a key file is used instead", func(t *testing.T) {
		t.Parallel()
		i := &access.Identities{AgentSocket: serveAgent(t, hang), ListTime: soon, Files: []string{keyFile(t, "ed25519")}}
		found := must(i.Find(t.Context()))(t)
		if len(found.Signers) != 1 || len(found.Skipped) != 1 || !strings.Contains(found.Skipped[0], "did not answer") {
			t.Errorf("got %+v", found)
		}
	})
}

// TestAgentsThatLie: an answer that is no signature by the requested key is detected before it is
// sent.
func TestAgentsThatLie(t *testing.T) {
	t.Parallel()
	real := newFakeAgent(t, "ed25519", "ecdsa256", "rsa3072")
	other := newKey(t, "ed25519")
	type sign = func(ssh.PublicKey, []byte, agent.SignatureFlags) (*ssh.Signature, error)
	for _, c := range []struct {
		name, key string
		sign      sign
	}{
		{"another key", "ed25519", func(_ ssh.PublicKey, data []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
			return other.Sign(nil, data)
		}},
		{"another text", "ed25519", func(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
			return real.SignWithFlags(key, slices.Concat(data, []byte{0}), flags)
		}},
		{"another algorithm's name", "ed25519", func(_ ssh.PublicKey, data []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
			sig, err := other.Sign(nil, data)
			sig.Format = "ssh-rsa"
			return sig, err
		}},
		{"SHA-1", "rsa3072", func(key ssh.PublicKey, data []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
			return real.SignWithFlags(key, data, 0)
		}},
		{"nothing", "ecdsa256", func(key ssh.PublicKey, _ []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
			return &ssh.Signature{Format: key.Type()}, nil
		}},
		{"something behind it", "ecdsa256", func(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
			sig, err := real.SignWithFlags(key, data, flags)
			sig.Rest = []byte("x")
			return sig, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAgent(t, c.key)
			f.sign = c.sign
			refused(t, loginThrough(t, newWorld(t, c.key), f.serve(t), never, never), fault.AuthAgentLied)
		})
	}
	t.Run("malformed keys", func(t *testing.T) {
		t.Parallel()
		f := newFakeAgent(t)
		f.list = func() ([]*agent.Key, error) {
			return []*agent.Key{
				{Format: "ssh-ed25519", Blob: []byte("junk")},
				{Format: "ssh-ed25519", Blob: []byte(wireKey(vectorKey(t, "ed25519")) + "x")},
				{Format: "ssh-dss", Blob: must(ssh.ParsePublicKey([]byte(wireKey(vectorKey(t, "ed25519")))))(t).Marshal()[:10]},
			}, nil
		}
		refused(t, loginThrough(t, newWorld(t, "ed25519"), f.serve(t), never, never), fault.AuthNoIdentity)
	})
}

// TestAgentThatIsLocked: the error says how to unlock the agent, whether it was locked before or after it listed its
// keys.
func TestAgentThatIsLocked(t *testing.T) {
	t.Parallel()
	f := newFakeAgent(t, "ed25519")
	if err := f.Lock([]byte("x")); err != nil {
		t.Fatal(err)
	}
	e := refused(t, loginThrough(t, newWorld(t, "ed25519"), f.serve(t), never, never), fault.AuthNoIdentity)
	late := newFakeAgent(t, "ed25519")
	late.sign = func(ssh.PublicKey, []byte, agent.SignatureFlags) (*ssh.Signature, error) {
		return nil, errors.New("locked")
	}
	e2 := refused(t, loginThrough(t, newWorld(t, "ed25519"), late.serve(t), never, never), fault.AuthAgentNo)
	for _, message := range []string{e.Message, e2.Message} {
		if !strings.Contains(message, "ssh-add -X") {
			t.Errorf("%q does not explain how to unlock it", message)
		}
	}
}
