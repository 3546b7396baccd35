package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// A client without an authorized key gets one error, and none of its frames is run.
func TestRefusedLogins(t *testing.T) {
	t.Parallel()
	key, stranger, old := newKey(t), newKey(t), newKey(t)
	h := startKeyed(t, key.Key().String(), `expiry-time="20200101" `+old.Key().String())
	reply := func(data string) string {
		return `{"kind":"reply","type":"Syscall.Authenticate","data":` + data + `,"metadata":{"id":"a","timestamp":0}}` + "\n"
	}
	t.Run("logins", func(t *testing.T) {
		t.Run("stranger", func(t *testing.T) {
			t.Parallel()
			p := h.login(t, stranger, h.KernelSocket)
			_, _ = p.nc.Write([]byte(shutdownFrame)) // the connection may be closed already
			p.wantRefused(stranger.Key().Fingerprint())
		})
		t.Run("expired", func(t *testing.T) {
			t.Parallel()
			h.login(t, old, h.EventsSocket).wantRefused("expired")
		})
		t.Run("no signature", func(t *testing.T) {
			t.Parallel()
			for _, data := range []string{`{}`, `null`, `{"scheme":"none"}`, `{"public_key":"` + key.Key().String() + `","signature":""}`} {
				p := connect(t, h.KernelSocket)
				p.next()
				p.send(reply(data))
				p.wantRefused("")
			}
		})
		t.Run("a command instead", func(t *testing.T) {
			t.Parallel()
			p := connect(t, h.KernelSocket)
			p.next()
			p.send(shutdownFrame + strings.Replace(reply(`{}`), "reply", "command", 1))
			for range 2 { // neither is an answer, so a valid one may still follow
				if m := p.next(); m.Kind != schema.KindError || !strings.Contains(string(m.Data), "not authenticated") {
					t.Errorf("got %s %s", m.Kind, m.Data)
				}
			}
		})
	})
	p := h.login(t, key, h.KernelSocket)
	p.want("query", "Audit.Log", `{"type":"Kernel.LoginFailed"}`, `"fingerprint":"`+stranger.Key().Fingerprint())
	entries := p.ask("query", "Audit.Log", `{"type":"Syscall.Shutdown"}`)
	if strings.Contains(string(entries.Data), `"Syscall.Shutdown"`) {
		t.Errorf("a stranger's frame was run: %s", entries.Data)
	}
}

// Attacks that could reuse an answer, on real connections: an answer is valid only on its own connection.
func TestAnswersElsewhere(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	h := startKeyed(t, key.Key().String())
	// made is an answer to the prologue of a connection that stays open.
	made := func(t *testing.T, path string) []byte {
		p := connect(t, path)
		offer := p.next()
		data, err := h.sign(t, key, path)(offer.Data, time.UnixMilli(offer.Meta.Timestamp))
		testkit.Must(t, err)
		return data
	}
	given := func(data []byte) access.AnswerFunc {
		return func([]byte, time.Time) ([]byte, error) { return data, nil }
	}
	for name, c := range map[string]struct{ from, to string }{
		"another connection":  {h.KernelSocket, h.KernelSocket},
		"the other socket":    {h.KernelSocket, h.EventsSocket},
		"and the other way":   {h.EventsSocket, h.KernelSocket},
		"another of that too": {h.EventsSocket, h.EventsSocket},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := connect(t, c.to)
			testkit.Must(t, access.ClientPrologue(testkit.Context(t), p.conn, given(made(t, c.from))))
			p.wantRefused("signature")
		})
	}
	t.Run("another kernel", func(t *testing.T) {
		t.Parallel()
		other := startKeyed(t, key.Key().String())
		p := connect(t, other.KernelSocket)
		testkit.Must(t, access.ClientPrologue(testkit.Context(t), p.conn, given(made(t, h.KernelSocket))))
		p.wantRefused("signature")
	})
	t.Run("another namespace", func(t *testing.T) {
		t.Parallel()
		p := connect(t, h.KernelSocket)
		testkit.Must(t, access.ClientPrologue(testkit.Context(t), p.conn, func(offer []byte, issued time.Time) ([]byte, error) {
			sig, err := key.Sign(t.Context(), "git", offer)
			testkit.Must(t, err)
			return schema.Marshal(map[string]string{"public_key": key.Key().String(), "signature": sig.Armor()})
		}))
		p.wantRefused("")
	})
	// The client is asked to sign for another path than its own, so a relay is detected.
	t.Run("a relay", func(t *testing.T) {
		t.Parallel()
		p := connect(t, h.KernelSocket)
		err := access.ClientPrologue(testkit.Context(t), p.conn, h.sign(t, key, h.EventsSocket))
		if !errors.Is(err, fault.AuthHost) {
			t.Errorf("got %v", err)
		}
	})
}

// The keys are read again when the file changes. Whatever happens to the file while the daemon runs, only keys in it are
// admitted.
func TestKeysFileChanges(t *testing.T) {
	t.Parallel()
	one, two := newKey(t), newKey(t)
	h := startKeyed(t, one.Key().String())
	in := func(key *access.Signer) {
		t.Helper()
		h.login(t, key, h.KernelSocket).want("query", "Syscall.Ping", `{"payload":1}`, "1")
	}
	out := func(key *access.Signer, why string) {
		t.Helper()
		h.login(t, key, h.KernelSocket).wantRefused(why)
	}
	in(one)
	out(two, "not in the daemon's authorized_keys")
	h.authorize(t, two.Key().String())
	in(two)
	out(one, "not in the daemon's authorized_keys")

	const unread = "the daemon cannot read its authorized_keys"
	testkit.Must(t, os.Chmod(h.config.AuthorizedKeys, 0o666)) // it changes no rights
	in(two)
	out(one, "not in the daemon's authorized_keys")
	h.authorize(t, one.Key().String()) // a change under those permissions does
	out(one, unread)
	out(two, unread)
	h.authorize(t, two.Key().String())
	testkit.Must(t, os.Chmod(h.config.AuthorizedKeys, 0o600))
	in(two)
	testkit.Must(t, os.Rename(h.config.AuthorizedKeys, h.config.AuthorizedKeys+".gone"))
	out(two, unread)
	p := connect(t, h.KernelSocket)
	testkit.Must(t, access.ClientPrologue(testkit.Context(t), p.conn, access.AnswerOpen))
	p.wantRefused("")
	testkit.Must(t, os.Symlink(h.config.AuthorizedKeys+".gone", h.config.AuthorizedKeys))
	out(two, unread)
	testkit.Must(t, os.Remove(h.config.AuthorizedKeys))
	testkit.Must(t, os.WriteFile(h.config.AuthorizedKeys, nil, 0o600))
	out(two, "not in the daemon's authorized_keys")
	testkit.Must(t, os.Rename(h.config.AuthorizedKeys+".gone", h.config.AuthorizedKeys))
	in(two)
}

// A daemon in signature mode that cannot read its keys does not start.
func TestKeysFileAtStart(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"missing":  func(string) error { return nil },
		"open":     func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o622)) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":   func(path string) error { return os.Symlink("/dev/null", path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := settingsIn(testkit.Dir(t))
			cfg.AuthorizedKeys = filepath.Join(filepath.Dir(cfg.StateDir), "authorized_keys")
			testkit.Must(t, put(cfg.AuthorizedKeys))
			d := daemon.New(cfg, nil, discard())
			if err := d.Open(testkit.Context(t)); err == nil || !strings.Contains(err.Error(), cfg.AuthorizedKeys) {
				t.Errorf("error %v, want one that names the file", err)
			}
			testkit.Must(t, d.Close())
		})
	}
}
