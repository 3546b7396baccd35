package kernel_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestFlippedBitsOverTheWire flips each bit of a sealed value: of the bytes of its members, of its JSON, and of the text
// itself. No such value can be opened, each gets an error that reveals nothing, and the kernel continues.
func TestFlippedBitsOverTheWire(t *testing.T) {
	t.Parallel()
	const secret, aad = "swordfish", "vault/fish"
	c := start(t, sealing(t)).dial(t)
	var s sealed
	c.call("Crypto.Seal", fmt.Sprintf(`{"plaintext":%q,"aad":%q}`, secret, aad), &s)
	inner, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(s.Value, "pwenc:v1:"))
	testkit.Must(t, err)
	wrap := func(inner []byte) string { return "pwenc:v1:" + base64.RawURLEncoding.EncodeToString(inner) }

	forged := make(map[string]bool)
	for _, text := range flips([]byte(s.Value)) {
		forged[string(text)] = true
	}
	for _, text := range flips(inner) {
		forged[wrap(text)] = true
	}
	var members map[string]any
	testkit.Must(t, json.Unmarshal(inner, &members))
	for _, name := range []string{"nonce", "ct", "aad"} {
		written := members[name].(string)
		raw, err := base64.RawURLEncoding.DecodeString(written)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, bits := range flips(raw) {
			other := base64.RawURLEncoding.EncodeToString(bits)
			if n := bytes.Count(inner, []byte(`"`+written+`"`)); n != 1 {
				t.Fatalf("%s occurs %d times in %s", name, n, inner)
			}
			forged[wrap(bytes.Replace(inner, []byte(`"`+written+`"`), []byte(`"`+other+`"`), 1))] = true
		}
	}
	for _, name := range []string{"v", "kid", "alg", "nonce", "ct", "aad"} {
		if _, ok := members[name]; !ok {
			t.Errorf("the value has no %s: the test does not cover it", name)
		}
	}
	delete(forged, s.Value)

	asked := 0
	for value := range forged {
		c.write(`{"kind":"query","type":"Crypto.Open","data":{"value":` + quote(value) + `},"metadata":{"id":"f","timestamp":1}}` + "\n")
		a := c.next()
		if f := c.fault(a); f.Code != 422 && f.Code != 400 || bytes.Contains(a.Data, []byte(secret)) || bytes.Contains(a.Data, []byte("pwenc:v1:ey")) {
			t.Fatalf("%q: %s", value, a.Data)
		}
		asked++
	}
	if want := 8 * len(s.Value); asked < want {
		t.Errorf("%d values were tried, want %d at least", asked, want)
	}
	if got := c.open(s.Value); got != secret {
		t.Errorf("the unchanged value opens as %q", got)
	}
}

// flips returns all texts that differ from text in one bit.
func flips(text []byte) (all [][]byte) {
	for i := range text {
		for bit := range 8 {
			other := bytes.Clone(text)
			other[i] ^= 1 << bit
			all = append(all, other)
		}
	}
	return all
}

// quote writes any bytes as a JSON string, which is invalid if they are not UTF-8.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(text) {
		switch {
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}
