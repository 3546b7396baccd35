package access_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

const kernelAt = "tls://kernel.example:7443"

// session is a TLS session as the client of the world sees it; number tells it from others.
func (w *world) session(number byte) access.TLS {
	return access.TLS{Name: kernelAt, Exporter: [access.ExporterSize]byte{number}, Shown: w.host.Key()}
}

// TestLoginOverTLS: a login is bound to its session. A program between both ends has a session with each.
func TestLoginOverTLS(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kernel access.Channel                // as the kernel sees the connection
		client func(w *world) access.Channel // as the client does
		reason fault.ID                      // with which the client refuses; "": it does not
	}{
		"one session":            {access.TLS{Exporter: [access.ExporterSize]byte{1}}, func(w *world) access.Channel { return w.session(1) }, ""},
		"a relay":                {access.TLS{Exporter: [access.ExporterSize]byte{2}}, func(w *world) access.Channel { return w.session(1) }, fault.AuthHost},
		"a relay from a socket":  {access.Local{Socket: socket, PID: pid, UID: uid}, func(w *world) access.Channel { return w.session(1) }, fault.AuthHost},
		"a relay to a socket":    {access.TLS{Exporter: [access.ExporterSize]byte{1}}, func(*world) access.Channel { return access.Local{Socket: socket, PID: pid, UID: uid} }, fault.AuthHost},
		"another key's document": {access.TLS{Exporter: [access.ExporterSize]byte{1}}, func(w *world) access.Channel { s := w.session(1); s.Shown = access.PublicKey{}; return s }, fault.AuthHost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ed25519")
			w.login.Channel = test.client(w)
			c := must(w.verifier.Challenge(t.Context(), test.kernel))(t)
			answer, err := w.login.Answer(t.Context(), c.Data(), c.Issued())
			if test.reason != "" {
				refused(t, err, test.reason)
				if _, err := os.Stat(w.login.Known.Path); err == nil {
					t.Error("the client remembers a kernel that it refused")
				}
				return
			}
			must(c.Verify(must(answer, err)(t).Data))(t)
			if known := must(w.login.Known.Lookup(kernelAt))(t); known != w.host.Key() {
				t.Errorf("the client remembers %v", known)
			}
		})
	}
}

// TestRelayedAnswer: the kernel refuses an answer that was made for another session, whatever its client checked.
func TestRelayedAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	me := newSigner(t, "ed25519")
	w.keys = me.Key().String()
	c := must(w.verifier.Challenge(t.Context(), w.session(1)))(t)
	b := bindingOf(t, c)
	b.Channel = w.session(2)
	_, err := c.Verify(answerWith(t, me, access.Namespace, must(b.Text(access.Client))(t)))
	refused(t, err, fault.AuthSignature)
}

// TestPinOverTLS: the pin of an address is that of a socket: another key is refused with the command that drops the
// known one, and so is a kernel that asks for no key, known or not.
func TestPinOverTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	w.login.Channel = w.session(1)
	_, err := w.login.Answer(t.Context(), []byte(`{"scheme":"none"}`), noon)
	refused(t, err, fault.AuthDowngraded)

	if err := w.login.Known.Accept(t.Context(), kernelAt, newSigner(t, "ed25519").Key()); err != nil {
		t.Fatal(err)
	}
	c := must(w.verifier.Challenge(t.Context(), w.session(1)))(t)
	_, err = w.login.Answer(t.Context(), c.Data(), c.Issued())
	if e := refused(t, err, fault.AuthHostChanged); !strings.Contains(e.Message, `"pwos --kernel `+kernelAt+` auth trust --forget"`) {
		t.Errorf("%q does not say how to drop the key", e.Message)
	}
}

func TestTLSName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tls://Kernel.example:7443": "tls://kernel.example:7443",
		"tls://127.0.0.1:07443":     "tls://127.0.0.1:7443",
		"tls://[::1]:1":             "tls://[::1]:1",
	} {
		name, address, err := access.TLSName(text)
		if err != nil || name != want || address != strings.TrimPrefix(want, "tls://") {
			t.Errorf("%s is %s, %s, %v", text, name, address, err)
		}
	}
	for _, text := range []string{
		"", "tls://", "kernel:1", "https://kernel:1", "TLS://kernel:1", "tls://kernel", "tls://kernel:", "tls://:1", "tls://kernel:0", "tls://kernel:65536",
		"tls://kernel:-1", "tls://kernel:1/", "tls://kernel:http", "tls://me@kernel:1", "tls://ker nel:1", "tls://kernel\n:1", "tls://kernël:1", "tls://::1:1",
		"tls://" + strings.Repeat("x", 300) + ":1",
	} {
		_, _, err := access.TLSName(text)
		refused(t, err, fault.AuthMalformed)
	}
}

// TestKnownAddresses: known_kernels has addresses beside sockets, each in its one form.
func TestKnownAddresses(t *testing.T) {
	t.Parallel()
	key := vectorKey(t, "ed25519")
	known := access.KnownKernels{Path: filepath.Join(privateDir(t), "known_kernels")}
	for _, name := range []string{socket, kernelAt} {
		if !must(known.Pin(t.Context(), name, key))(t) {
			t.Errorf("%s is not new", name)
		}
	}
	if list := must(known.List())(t); len(list) != 2 || list[1].Socket != kernelAt {
		t.Errorf("got %v", list)
	}
	for _, name := range []string{"tls://Kernel.example:7443", "tls://kernel.example", "kernel.example:7443"} {
		if err := os.WriteFile(known.Path, []byte(key.String()+" "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := known.List()
		refused(t, err, fault.PlaceUnsafe)
	}
}
