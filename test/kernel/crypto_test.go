package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// sealed is the answer of Crypto.Seal.
type sealed struct {
	Value string `json:"value"`
	KeyID string `json:"kid"`
}

// open returns the answer of Crypto.Open for a value.
func (c *client) open(value string) (plaintext string) {
	c.t.Helper()
	var out struct {
		Plaintext string `json:"plaintext"`
	}
	c.call("Crypto.Open", fmt.Sprintf(`{"value":%q}`, value), &out)
	return out.Plaintext
}

// TestSealAndOpen seals a text, stores it under vault/, and opens it after a restart. The text is in no file of the kernel.
func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	const secret = "correct horse battery staple"
	d := start(t, sealing(t))
	c := d.dial(t)
	var first, second sealed
	c.call("Crypto.Seal", `{"plaintext":"`+secret+`"}`, &first)
	c.call("Crypto.Seal", `{"plaintext":"`+secret+`","aad":"vault/horse"}`, &second)
	for _, s := range []sealed{first, second} {
		if !strings.HasPrefix(s.Value, "pwenc:v1:") || !strings.HasPrefix(s.KeyID, "ssh-fp:SHA256:") {
			t.Errorf("got %+v", s)
		}
	}
	var key struct {
		KeyID string `json:"kid"`
		Alg   string `json:"alg"`
	}
	c.call("Crypto.Derive", fmt.Sprintf(`{"kid":%q}`, first.KeyID), &key)
	if key.KeyID != first.KeyID || key.Alg != "A256GCM" {
		t.Errorf("Crypto.Derive returns %+v, and the sealed value has %+v", key, first)
	}
	c.refused(404, "Crypto.Derive", `{"kid":"ssh-fp:SHA256:other"}`, first.KeyID)
	c.call("Memory.Set", fmt.Sprintf(`{"key":"vault/horse","value":%q}`, second.Value), nil)

	d.restart(t)
	c = d.dial(t)
	var kept string
	c.call("Memory.Get", `{"key":"vault/horse"}`, &kept)
	for _, value := range []string{first.Value, kept} {
		if got := c.open(value); got != secret {
			t.Errorf("opened as %q", got)
		}
	}
	c.call("Crypto.Open", fmt.Sprintf(`{"value":%q,"aad":"vault/horse"}`, kept), nil)
	c.refused(422, "Crypto.Open", fmt.Sprintf(`{"value":%q,"aad":"vault/cow"}`, kept), "sealed for something else")
	c.refused(422, "Crypto.Open", fmt.Sprintf(`{"value":%q,"aad":"vault/cow"}`, first.Value), "sealed for something else")
	d.stop()
	if found := testkit.FilesWith(t, secret, d.cfg.StateDir, d.cfg.RuntimeDir); found != nil {
		t.Errorf("%v hold the secret", found)
	}
}

// TestSealRunsAgain repeats a seal with one idempotency key: each time it returns another value, since the secret is stored
// nowhere to compare, and both values can be opened.
func TestSealRunsAgain(t *testing.T) {
	t.Parallel()
	c := start(t, sealing(t)).dial(t)
	values := make(map[string]bool)
	for _, text := range []string{"one", "one", "two"} {
		a := c.askWith("Crypto.Seal", `{"plaintext":"`+text+`"}`, `,"idempotencyKey":"k"`)
		var s sealed
		if err := json.Unmarshal(a.Data, &s); err != nil || a.Kind != "reply" {
			t.Fatalf("%s: %s", text, a.Data)
		}
		if got := c.open(s.Value); got != text {
			t.Errorf("sealed %q, opened as %q", text, got)
		}
		values[s.Value] = true
	}
	if len(values) != 3 {
		t.Errorf("three seals returned %d different values", len(values))
	}
}

// TestSealedValuesTravel opens in the kernel what was sealed outside with the same key, and the other way round.
func TestSealedValuesTravel(t *testing.T) {
	t.Parallel()
	path := sealingKey(t)
	found, err := (&access.Identities{Identity: path}).Find(t.Context())
	testkit.Must(t, err)
	outside, err := access.Enroll(t.Context(), found.Signers[0])
	testkit.Must(t, err)
	c := start(t, withIdentity(path)).dial(t)
	for _, text := range []string{"", "a", "\u2028 \"\\\t\x01 ö 𝄞", strings.Repeat("x", 8000)} {
		value, err := outside.Seal(t.Context(), []byte(text), nil)
		testkit.Must(t, err)
		if got := c.open(value); got != text {
			t.Errorf("%.40q opens in the kernel as %.40q", text, got)
		}
		data, err := json.Marshal(map[string]string{"plaintext": text})
		testkit.Must(t, err)
		var s sealed
		c.call("Crypto.Seal", string(data), &s)
		if got, _, err := outside.Open(t.Context(), s.Value); err != nil || string(got) != text {
			t.Errorf("%.40q opens outside as %.40q, %v", text, got, err)
		}
		c.call("Memory.Set", fmt.Sprintf(`{"key":"vault/k","value":%q}`, s.Value), nil)
	}
	binary, err := outside.Seal(t.Context(), []byte("\xff\xfe"), nil)
	testkit.Must(t, err)
	c.refused(422, "Crypto.Open", fmt.Sprintf(`{"value":%q}`, binary), "pwos unseal")
	c.refused(422, "Crypto.Seal", fmt.Sprintf(`{"plaintext":%q}`, strings.Repeat("x", 8001)), "at most 8000")
	other := start(t, sealing(t)).dial(t)
	value, err := outside.Seal(t.Context(), []byte("a"), nil)
	testkit.Must(t, err)
	other.refused(422, "Crypto.Open", fmt.Sprintf(`{"value":%q}`, value), "sealed by the key "+outside.Key().Fingerprint())
}

// TestOpenIsGrantedByName: no pattern lets an agent open values, it cannot grant what it does not have, and an agent whose
// token names the syscall can. Sealing needs no more than other syscalls.
func TestOpenIsGrantedByName(t *testing.T) {
	t.Parallel()
	c := start(t, sealing(t)).dial(t)
	var s sealed
	c.call("Crypto.Seal", `{"plaintext":"a"}`, &s)
	all := c.spawn(0, `{"allowed_syscalls":["*","Crypto.*"]}`)
	named := c.spawn(0, `{"allowed_syscalls":["*","Crypto.Open"]}`)
	openAs := func(pid int64) string { return fmt.Sprintf(`{"pid":%d,"value":%q}`, pid, s.Value) }

	c.refused(403, "Crypto.Open", openAs(all), "granted by its name", fmt.Sprintf("pwos cap grant %d --add Crypto.Open", all))
	c.call("Crypto.Seal", fmt.Sprintf(`{"pid":%d,"plaintext":"b"}`, all), nil)
	c.call("Crypto.Derive", fmt.Sprintf(`{"pid":%d}`, all), nil)
	var check struct {
		Allowed bool `json:"allowed"`
	}
	for pid, want := range map[int64]bool{all: false, named: true} {
		c.call("Capability.Check", fmt.Sprintf(`{"pid":%d,"syscall":"Crypto.Open"}`, pid), &check)
		if check.Allowed != want {
			t.Errorf("Capability.Check says %v of pid %d", check.Allowed, pid)
		}
	}
	c.call("Crypto.Open", openAs(named), nil)
	c.call("Crypto.Open", openAs(0), nil)

	c.refused(403, "Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"x","capabilities":{"allowed_syscalls":["Crypto.Open"]}}`, all), "Crypto.Open")
	child := c.spawn(named, `{"allowed_syscalls":["Crypto.Open"]}`)
	c.call("Crypto.Open", openAs(child), nil)
	heir := c.spawn(named, `{"allowed_syscalls":["*"]}`)
	c.refused(403, "Crypto.Open", openAs(heir), "granted by its name")
	c.call("Capability.GrantDefault", fmt.Sprintf(`{"pid":%d}`, heir), nil)
	c.refused(403, "Crypto.Open", openAs(heir))
}

// TestOpenIsListedByName: an agent's list of its syscalls has Crypto.Open only if its token names it.
func TestOpenIsListedByName(t *testing.T) {
	t.Parallel()
	p := assemble(t)
	operator := p.connect(0)
	for capability, want := range map[string]bool{
		`{"allowed_syscalls":["*"]}`: false, `{"allowed_syscalls":["Crypto.*"]}`: false, `{"allowed_syscalls":["Crypto.*","Crypto.Open"]}`: true,
	} {
		a := p.connect(operator.spawn(0, capability)).call("Syscall.List", `{}`, nil)
		if got := strings.Contains(string(a.Data), `"Crypto.Open"`); got != want || !strings.Contains(string(a.Data), `"Crypto.Seal"`) {
			t.Errorf("%s lists %s", capability, a.Data)
		}
	}
}

// TestNoKeyToSealWith uses a kernel without a key. The error says how it gets one, and nests the reason.
func TestNoKeyToSealWith(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for typ, data := range map[string]string{
		"Crypto.Seal": `{"plaintext":"sekret"}`, "Crypto.Open": `{"value":"sekret"}`, "Crypto.Derive": `{}`,
	} {
		for _, dialect := range dialects() {
			a := c.speak(dialect, typ, data, "")
			f := c.failure(a)
			want := codes{schema.OsMessage: 422.0, schema.OsEvent: "INVALID_INPUT"}[dialect]
			if f.Code != want || !strings.Contains(f.Message, "crypto.identity") || !strings.Contains(f.Message, "ssh-agent") ||
				!strings.Contains(string(a.Data), "SSH_AUTH_SOCK") || strings.Contains(string(a.Data), "sekret") {
				t.Errorf("%s as an %s: %s", typ, dialect, a.Data)
			}
		}
	}
	// As in MESSAGE, appendix B, example 4.
	var f struct {
		Code  int `json:"code"`
		Cause struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"cause"`
	}
	a := c.ask("Crypto.Seal", `{"plaintext":"secret"}`)
	if err := json.Unmarshal(a.Data, &f); err != nil || f.Code != 422 || f.Cause.Code != 404 || f.Cause.Message == "" {
		t.Errorf("%s, %v", a.Data, err)
	}
}

// TestSecondExample sends the second example of the appendixes of MESSAGE and EVENT: a seal with an unknown member. The
// error has the right code and the request as its cause, and does not contain the secret.
func TestSecondExample(t *testing.T) {
	t.Parallel()
	c := start(t, sealing(t)).dialOn(t, "events.sock")
	const data = `{"plaintext":"secret","key":"invalid"}`
	c.write(`{"kind":"command","type":"Crypto.Seal","data":` + data + `,"metadata":{"id":"msg-789","timestamp":1735000002000}}` + "\n")
	a := c.next()
	if f := c.fault(a); a.Kind != "error" || a.Type != "Crypto.Seal" || f.Code != 422 || a.Metadata.Causation != "msg-789" ||
		strings.Contains(string(a.Data), "secret") || strings.Contains(string(a.Data), "invalid\"") {
		t.Errorf("OsMessage: %s, %+v", a.Data, a.Metadata)
	}
	c.write(`{"type":"command","name":"Crypto.Seal","payload":` + data + `,"metadata":{"id":"evt-789","timestamp":1735000002000}}` + "\n")
	var f failure
	a = c.next()
	if err := json.Unmarshal(a.Payload, &f); err != nil || a.Type != "error" || a.Name != "Crypto.Seal" || f.Code != "INVALID_INPUT" ||
		a.Metadata.Causation != "evt-789" || strings.Contains(string(a.Payload), "secret") {
		t.Errorf("OsEvent: %s, %+v", a.Payload, a.Metadata)
	}
}
