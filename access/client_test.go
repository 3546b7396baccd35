package access_test

import (
	"context"
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestClientRefuses: the client signs only for a kernel that proves itself for this connection. For
// any other offer it sends no signature and pins no key.
func TestClientRefuses(t *testing.T) {
	t.Parallel()
	text := func(o map[string]string) []byte { return jsonOf(t, o) }
	for _, c := range []struct {
		name   string
		reason fault.ID
		// change makes the offer, its time, or the client's connection differ from what the daemon
		// saw.
		change func(w *world, o map[string]string, issued *time.Time)
	}{
		{"no challenge", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) { delete(o, "challenge") }},
		{"a short challenge", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) { o["challenge"] = "AAAA" }},
		{"a long challenge", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) {
			o["challenge"] = base64.StdEncoding.EncodeToString(make([]byte, 33))
		}},
		{"a challenge with a line end", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) { o["challenge"] += "\n" }},
		{"a challenge in base64url", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) {
			o["challenge"] = strings.Repeat("-_", 21) + "-="
		}},
		{"a challenge that is not base64", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) {
			o["challenge"] = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904"
		}},
		{"a challenge that the proof does not cover", fault.AuthHost, func(_ *world, o map[string]string, _ *time.Time) {
			o["challenge"] = base64.StdEncoding.EncodeToString(append(make([]byte, 31), 1))
		}},
		{"no host key", fault.AuthHost, func(_ *world, o map[string]string, _ *time.Time) { delete(o, "host_key") }},
		{"a host key with a comment", fault.AuthHost, func(_ *world, o map[string]string, _ *time.Time) { o["host_key"] += " root@host" }},
		{"a host key and a second line", fault.AuthHost, func(_ *world, o map[string]string, _ *time.Time) { o["host_key"] += "\nuid: 0" }},
		{"a host key that the proof does not cover", fault.AuthHost, func(_ *world, o map[string]string, _ *time.Time) {
			o["host_key"] = newSigner(t, "ed25519").Key().String()
		}},
		{"a host key of 2048 bits", fault.AuthHost, func(_ *world, o map[string]string, _ *time.Time) {
			o["host_key"] = strings.Join(strings.Fields(vector(t, "rsa2048.pub"))[:2], " ")
		}},
		{"no proof", fault.AuthHost, func(_ *world, o map[string]string, _ *time.Time) { delete(o, "host_signature") }},
		{"a malformed proof", fault.AuthHost, func(_ *world, o map[string]string, _ *time.Time) { o["host_signature"] = "AAAA" }},
		{"a proof cut short", fault.AuthHost, func(_ *world, o map[string]string, _ *time.Time) { o["host_signature"] = o["host_signature"][:40] }},
		{"the right host key, proven with another", fault.AuthHost, func(w *world, o map[string]string, issued *time.Time) {
			fake := newSigner(t, "ed25519")
			o["host_signature"] = proofOf(t, w, fake, o, *issued, access.HostNamespace, access.Host)
		}},
		{"a proof in the client's namespace", fault.AuthHost, func(w *world, o map[string]string, issued *time.Time) {
			o["host_signature"] = proofOf(t, w, w.host, o, *issued, access.Namespace, access.Host)
		}},
		{"a proof in the client's role", fault.AuthHost, func(w *world, o map[string]string, issued *time.Time) {
			o["host_signature"] = proofOf(t, w, w.host, o, *issued, access.HostNamespace, access.Client)
		}},
		{"a relay's socket", fault.AuthHost, func(w *world, _ map[string]string, _ *time.Time) {
			w.login.Channel = access.Local{Socket: "/tmp/relay/kernel.sock", PID: pid, UID: uid}
		}},
		{"a relay's process", fault.AuthHost, func(w *world, _ map[string]string, _ *time.Time) {
			w.login.Channel = access.Local{Socket: socket, PID: pid + 1, UID: uid}
		}},
		{"a relay's user", fault.AuthHost, func(w *world, _ map[string]string, _ *time.Time) {
			w.login.Channel = access.Local{Socket: socket, PID: pid}
		}},
		{"a time that the proof does not cover", fault.AuthHost, func(_ *world, _ map[string]string, issued *time.Time) { *issued = issued.Add(time.Millisecond) }},
		{"a recorded prologue", fault.AuthLate, func(w *world, _ map[string]string, _ *time.Time) {
			w.login.Now = at(noon.Add(access.Window + time.Second))
		}},
		{"a prologue of the future", fault.AuthLate, func(w *world, _ map[string]string, _ *time.Time) {
			w.login.Now = at(noon.Add(-access.Window - time.Second))
		}},
		{"a member more", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) { o["sign_this"] = "x" }},
		{"another scheme", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) { o["scheme"] = "raw" }},
		{"no scheme", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) { delete(o, "scheme") }},
		{"scheme none with a challenge", fault.AuthMalformed, func(_ *world, o map[string]string, _ *time.Time) { o["scheme"] = "none" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ed25519")
			challenge := w.challenge(t)
			o, issued := offerOf(t, challenge), challenge.Issued()
			c.change(w, o, &issued)
			answer, err := w.login.Answer(t.Context(), text(o), issued)
			if answer != nil {
				t.Errorf("the client answers %s", answer.Data)
			}
			refused(t, err, c.reason)
			if known := must(w.login.Known.List())(t); len(known) != 0 {
				t.Errorf("the client has pinned %v", known)
			}
		})
	}
	for _, junk := range []string{``, `{`, `null`, `[]`, `{"scheme":"signature","scheme":"none"}`, `{"scheme":"none"} {}`, strings.Repeat(`[`, 100)} {
		w := newWorld(t, "ed25519")
		_, err := w.login.Answer(t.Context(), []byte(junk), noon)
		refused(t, err, fault.AuthMalformed)
	}
}

// proofOf signs a host's proof with another key, namespace or role.
func proofOf(t testing.TB, w *world, by *access.Signer, o map[string]string, issued time.Time, namespace string, role access.Role) string {
	t.Helper()
	raw := must(base64.StdEncoding.DecodeString(o["challenge"]))(t)
	b := &access.Binding{
		Challenge: [32]byte(raw), HostKey: w.host.Key(),
		Channel: access.Local{Socket: socket, PID: pid, UID: uid}, Issued: issued,
	}
	armor := armorOf(t, by, namespace, must(b.Text(role))(t))
	lines := strings.Split(strings.TrimSpace(armor), "\n")
	return strings.Join(lines[1:len(lines)-1], "")
}

// TestHostKeyChanges: a changed host key at a known socket is refused with an explanation until a
// person accepts it; another socket has its own pin.
func TestHostKeyChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	w.answer(t, w.challenge(t))
	old := w.host.Key()

	w.host = newSigner(t, "ed25519")
	w.verifier.Host = w.host
	c := w.challenge(t)
	_, err := w.login.Answer(t.Context(), c.Data(), c.Issued())
	e := refused(t, err, fault.AuthHostChanged)
	for _, said := range []string{old.Fingerprint(), w.host.Key().Fingerprint(), socket, "pwos auth trust", "Nothing was signed"} {
		if !strings.Contains(e.Message, said) {
			t.Errorf("%q does not mention %s", e.Message, said)
		}
	}
	if known := must(w.login.Known.Lookup(socket))(t); known != old {
		t.Error("the client forgot the known key")
	}
	if err := w.login.Known.Accept(t.Context(), socket, w.host.Key()); err != nil {
		t.Fatal(err)
	}
	must(c.Verify(w.answer(t, c).Data))(t)
}

// TestDowngrade: a kernel that proved itself once must do so again; one that never did need not.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	open := []byte(`{"scheme":"none"}`)
	answer := must(w.login.Answer(t.Context(), open, noon))(t)
	if string(answer.Data) != "{}" || !answer.Key.IsZero() {
		t.Errorf("got %+v", answer)
	}
	w.answer(t, w.challenge(t))
	_, err := w.login.Answer(t.Context(), open, noon)
	refused(t, err, fault.AuthDowngraded)
	if err := w.login.Known.Forget(t.Context(), socket); err != nil {
		t.Fatal(err)
	}
	must(w.login.Answer(t.Context(), open, noon))(t)
}

// TestPrefer: of several keys the client uses the one that the caller prefers, else the first.
func TestPrefer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ecdsa256")
	w.login.Identities = &access.Identities{Files: []string{keyFile(t, "ed25519"), "/nowhere/id_rsa", keyFile(t, "ecdsa256")}}
	c := w.challenge(t)
	_, err := c.Verify(w.answer(t, c).Data)
	if e := refused(t, err, fault.AuthNoSuchKey); !strings.Contains(e.Message, vectorKey(t, "ed25519").Fingerprint()) ||
		!strings.Contains(e.Message, access.AcceptedTypes) {
		t.Errorf("%q does not name the offered and the accepted keys", e.Message)
	}
	w.login.Prefer = func(key access.PublicKey) bool { return key == vectorKey(t, "ecdsa256") }
	c = w.challenge(t)
	must(c.Verify(w.answer(t, c).Data))(t)
}

// TestSocketName: both ends derive the same name of a socket, whatever links are in its path.
func TestSocketName(t *testing.T) {
	t.Parallel()
	dir := must(filepath.EvalSymlinks(t.TempDir()))(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	name := must(access.SocketName(filepath.Join(link, "kernel.sock")))(t)
	if want := filepath.Join(dir, "kernel.sock"); name != want {
		t.Errorf("got %s, want %s", name, want)
	}
	if _, err := access.SocketName("/nowhere/at/all/kernel.sock"); err == nil {
		t.Error("a missing directory has a name")
	}
}

// TestTenThousandBadLogins: failed logins do not delay a good one.
func TestTenThousandBadLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	keys := must(w.verifier.Keys())(t)
	w.verifier.Keys = func() (*access.AuthorizedKeys, error) { return keys, nil }
	stranger := newSigner(t, "ed25519")
	bad := answerWith(t, stranger, access.Namespace, []byte("x"))
	var failures access.Failures
	for range 10_000 {
		c := must(w.verifier.Challenge(context.Background(), access.Local{Socket: socket, PID: pid, UID: uid}))(t)
		if _, err := c.Verify(bad); err == nil {
			t.Fatal("an unknown key is admitted")
		}
		failures.Failed(uid, noon)
	}
	c := w.challenge(t)
	must(c.Verify(w.answer(t, c).Data))(t)
}

// TestOfferIsWhatTheProtocolSays: an offer has exactly the members of PROTOCOL 4.
func TestOfferIsWhatTheProtocolSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ed25519")
	c := w.challenge(t)
	o := offerOf(t, c)
	names := maps.Clone(o)
	for _, name := range []string{"scheme", "challenge", "host_key", "host_signature"} {
		delete(names, name)
	}
	if len(o) != 4 || len(names) != 0 || o["scheme"] != "signature" || o["host_key"] != w.host.Key().String() {
		t.Errorf("got %s", c.Data())
	}
}
