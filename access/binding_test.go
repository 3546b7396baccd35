package access_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestSecurityKey: a FIDO key must be touched unless its line has no-touch-required, and must be
// made for SSH.
func TestSecurityKey(t *testing.T) {
	t.Parallel()
	const touched, verified = 0x01, 0x04
	for _, c := range []struct {
		name        string
		application string
		flags       byte
		option      string
		reason      fault.ID
	}{
		{"touched", "ssh:", touched, "", ""},
		{"touched, of a name", "ssh:pwos", touched, "", ""},
		{"touched, verified", "ssh:", touched | verified, "", ""},
		{"not touched", "ssh:", 0, "", fault.AuthNoTouch},
		{"verified, not touched", "ssh:", verified, "", fault.AuthNoTouch},
		{"not touched, allowed", "ssh:", 0, "no-touch-required ", ""},
		{"touched, allowed", "ssh:", touched, "no-touch-required ", ""},
		{"of a web site", "https://example.org", touched, "", fault.AuthSignature},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			key := newSecurityKey(c.application, c.flags)
			w := newWorld(t, "ed25519")
			w.keys = c.option + key.public().String()
			challenge := w.challenge(t)
			text := must(bindingOf(t, challenge).Text(access.Client))(t)
			got, err := challenge.Verify(answerText(t, key.public().String(), key.armor(text)))
			if c.reason != "" {
				refused(t, err, c.reason)
				return
			}
			if err != nil || got.Key != key.public() {
				t.Errorf("got %+v, %v", got, err)
			}

			// The flags are signed too: they cannot be set later.
			sig := key.armor(text)
			key.flags ^= touched
			other := must(access.ParseArmored(key.armor(text)))(t)
			if err := other.Verify(access.Namespace, slices.Concat(text, []byte("x")), true); err == nil {
				t.Error("the signature verifies for another text")
			}
			lines := strings.Split(strings.TrimSpace(sig), "\n")
			blob := must(base64.StdEncoding.DecodeString(strings.Join(lines[1:len(lines)-1], "")))(t)
			blob[len(blob)-5] ^= verified
			forged := must(access.ParseArmored(armored(blob)))(t)
			refused(t, forged.Verify(access.Namespace, text, true), fault.AuthSignature)
		})
	}
}

// TestBindingText: members that would make the text ambiguous are not signed.
func TestBindingText(t *testing.T) {
	t.Parallel()
	in := func(path string) access.Channel { return access.Local{Socket: path, PID: pid, UID: uid} }
	for name, change := range map[string]func(*access.Binding){
		"no challenge":                    func(b *access.Binding) { b.Challenge = [32]byte{} },
		"no host key":                     func(b *access.Binding) { b.HostKey = access.PublicKey{} },
		"no pid":                          func(b *access.Binding) { b.Channel = access.Local{Socket: socket, UID: uid} },
		"a negative uid":                  func(b *access.Binding) { b.Channel = access.Local{Socket: socket, PID: pid, UID: -1} },
		"no time":                         func(b *access.Binding) { b.Issued = time.Time{} },
		"no socket":                       func(b *access.Binding) { b.Channel = in("") },
		"a relative socket":               func(b *access.Binding) { b.Channel = in("kernel.sock") },
		"a socket path that is not clean": func(b *access.Binding) { b.Channel = in("/run/../run/kernel.sock") },
		"a line end":                      func(b *access.Binding) { b.Channel = in("/run\nuid: 0") },
		"a NUL":                           func(b *access.Binding) { b.Channel = in("/run\x00") },
		"not UTF-8":                       func(b *access.Binding) { b.Channel = in("/run\xff") },
		"a line separator":                func(b *access.Binding) { b.Channel = in("/run\u2028") },
		"a very long socket path":         func(b *access.Binding) { b.Channel = in("/" + strings.Repeat("x", 2000)) },
		"a next line":                     func(b *access.Binding) { b.Channel = in("/run\u0085") },
		"no channel":                      func(b *access.Binding) { b.Channel = nil },
		"a session without exporter":      func(b *access.Binding) { b.Channel = access.TLS{} },
		"before time's begin":             func(b *access.Binding) { b.Issued = time.UnixMilli(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := vectorBinding(t)
			change(b)
			_, err := b.Text(access.Client)
			refused(t, err, fault.AuthMalformed)
		})
	}
	if _, err := vectorBinding(t).Text("root"); err == nil {
		t.Error("Text accepts a third role")
	}
}
