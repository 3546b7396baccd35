package daemon_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// newKey returns a new key for a login.
func newKey(t testing.TB) *access.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	raw, err := ssh.NewSignerFromSigner(private)
	testkit.Must(t, err)
	key, err := access.NewSigner(raw, "test")
	testkit.Must(t, err)
	return key
}

// house is a daemon in signature mode, with the known hosts of its clients.
type house struct {
	*running
	config config.Config
	known  access.KnownKernels
}

// startKeyed starts a daemon that admits the keys of the lines.
func startKeyed(t *testing.T, lines ...string) *house {
	t.Helper()
	dir := testkit.Dir(t)
	h := &house{config: settingsIn(dir), known: access.KnownKernels{Path: filepath.Join(dir, "c", "known_kernels")}}
	h.config.AuthorizedKeys = filepath.Join(dir, "authorized_keys")
	h.config.Origin = "https://test.local/"
	h.config.Resources = map[string]float64{"gpu": 4}
	h.authorize(t, lines...)
	h.running = run(t, h.config)
	return h
}

func (h *house) authorize(t testing.TB, lines ...string) {
	t.Helper()
	testkit.Must(t, os.WriteFile(h.config.AuthorizedKeys, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// restart stops the daemon and starts it again.
func (h *house) restart(t *testing.T) {
	t.Helper()
	h.stop()
	testkit.Must(t, testkit.Receive(t, h.ended, "the daemon's end"))
	h.running = run(t, h.config)
}

// sign returns a function that answers offers with key, as a client at path.
func (h *house) sign(t testing.TB, key *access.Signer, path string) access.AnswerFunc {
	t.Helper()
	name, err := access.SocketName(path)
	testkit.Must(t, err)
	return h.signOver(t, key, access.Local{Socket: name, PID: os.Getpid(), UID: os.Geteuid()})
}

// signOver is sign for a client at the other end of channel.
func (h *house) signOver(t testing.TB, key *access.Signer, channel access.Channel) access.AnswerFunc {
	return func(offer []byte, issued time.Time) ([]byte, error) {
		login := access.Login{
			Channel: channel, Known: h.known, Now: time.Now,
			Pick: func(context.Context) (*access.Signer, error) { return key, nil },
		}
		answer, err := login.Answer(t.Context(), offer, issued)
		if err != nil {
			return nil, err
		}
		return answer.Data, nil
	}
}

// login returns a connection that has logged in with a key.
func (h *house) login(t testing.TB, key *access.Signer, path string) *peer {
	t.Helper()
	p := connect(t, path)
	testkit.Must(t, access.ClientPrologue(testkit.Context(t), p.conn, h.sign(t, key, path)))
	return p
}

// ask sends one message and returns its answer.
func (p *peer) ask(kind, typ, data string) schema.Message {
	p.t.Helper()
	p.send(fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"q","timestamp":0}}`+"\n", kind, typ, data))
	return p.next()
}

// want checks that the answer is a reply whose data contains in.
func (p *peer) want(kind, typ, data, in string) {
	p.t.Helper()
	if m := p.ask(kind, typ, data); m.Kind != schema.KindReply || !strings.Contains(string(m.Data), in) {
		p.t.Errorf("%s %s: got %s %s, want %s", typ, data, m.Kind, m.Data, in)
	}
}

// wantDenied checks that the answer is an error with that code.
func (p *peer) wantDenied(kind, typ, data string, code int) {
	p.t.Helper()
	if m := p.ask(kind, typ, data); m.Kind != schema.KindError || !strings.Contains(string(m.Data), fmt.Sprintf(`"code":%d`, code)) {
		p.t.Errorf("%s %s: got %s %s, want %d", typ, data, m.Kind, m.Data, code)
	}
}

// wantRefused checks that one error says why the login was refused, and that nothing follows it, not even the outcome of a
// frame that was sent after the answer.
func (p *peer) wantRefused(why string) {
	p.t.Helper()
	m := p.next()
	if m.Kind != schema.KindError || !strings.Contains(string(m.Data), why) ||
		!strings.Contains(string(m.Data), "401") && !strings.Contains(string(m.Data), "UNAUTHORIZED") {
		p.t.Errorf("got %s %s, want it refused for %s", m.Kind, m.Data, why)
	}
	p.wantEnd()
}

// An operator's key logs in as the operator, on either socket, from the first frame on. A successful login has no answer.
func TestOperatorsKey(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	h := startKeyed(t, key.Key().String()+" me")
	for _, path := range []string{h.KernelSocket, h.EventsSocket} {
		p := h.login(t, key, path)
		p.want("query", "Syscall.Ping", `{"payload":1}`, `{"payload":1}`)
		p.want("command", "Clock.Advance", `{"ticks":1}`, `"tick":`)
	}
	if known, err := h.known.List(); err != nil || len(known) != 2 {
		t.Errorf("the known hosts have the kernel as %v, %v; want one for each socket", known, err)
	}
}

// The offer has the form of PROTOCOL 4, in the socket's dialect, and each challenge is used once.
func TestOfferOfSignatureMode(t *testing.T) {
	t.Parallel()
	h := startKeyed(t, newKey(t).Key().String())
	seen := map[string]bool{}
	for path, dialect := range map[string]schema.Dialect{h.KernelSocket: schema.OsMessage, h.EventsSocket: schema.OsEvent} {
		for range 2 {
			offer := connect(t, path).next()
			if offer.Dialect != dialect || offer.Kind != schema.KindCommand || offer.Type != "Syscall.Authenticate" {
				t.Errorf("%s begins with %v %s %s", path, offer.Dialect, offer.Kind, offer.Type)
			}
			for _, member := range []string{`"scheme":"signature"`, `"challenge":"`, `"host_key":"ssh-ed25519 `, `"host_signature":"`} {
				if !strings.Contains(string(offer.Data), member) {
					t.Errorf("its data %s lacks %s", offer.Data, member)
				}
			}
			_, rest, _ := strings.Cut(string(offer.Data), `"challenge":"`)
			challenge, _, _ := strings.Cut(rest, `"`)
			if len(challenge) != 44 || seen[challenge] {
				t.Errorf("the challenge %s is short, or was there before", challenge)
			}
			seen[challenge] = true
		}
	}
}

// A grant of a key can name registered syscalls by name, and user-space syscalls by path.
func TestKeyOfRegistered(t *testing.T) {
	t.Parallel()
	operator, agent := newKey(t), newKey(t)
	h := startKeyed(t, operator.Key().String(), `allow="Sum.Add,Call:mcp/fs/*" `+agent.Key().String())
	o := h.login(t, operator, h.KernelSocket)
	o.want("command", "Syscall.Register", `{"name":"Sum.Add","kind":"query","input":{},"provider":"connection"}`, `"registered":true`)
	a := h.login(t, agent, h.KernelSocket)
	a.want("query", "Syscall.List", `{}`, `"Sum.Add"`)
	a.want("query", "Syscall.List", `{}`, `"paths":["mcp/fs/*"]`)
}
