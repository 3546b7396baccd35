package crypto_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/crypto"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// shaky is a sealer with readable seals, and an identity that has it, or the reason why not.
type shaky struct{ err error }

func (s shaky) Sealer() (crypto.Sealer, error) { return s, s.err }

func (shaky) Seal(plaintext, aad []byte) (string, error) {
	if string(plaintext) == "fails" {
		return "", errors.New("no more ink")
	}
	return "pwenc:v1:" + string(aad) + "|" + string(plaintext), nil
}

func (shaky) Open(value string) (plaintext, aad []byte, err error) {
	clear, text, ok := strings.Cut(strings.TrimPrefix(value, "pwenc:v1:"), "|")
	if !ok {
		return nil, nil, fault.WireInvalidInput.New("broken")
	}
	return []byte(text), []byte(clear), nil
}

func (shaky) KeyID() string     { return "ssh-fp:SHA256:x" }
func (shaky) Algorithm() string { return "A256GCM" }

// decide decides a call as the shell does.
func decide(t *testing.T, identity crypto.Identity, typ, data string, final bool) (kernel.Result, error) {
	t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		t.Fatalf("no syscall %s", typ)
	}
	in, invalid := row.Input().Decode([]byte(data))
	if invalid != nil {
		t.Fatal(invalid)
	}
	return crypto.New(identity, shaky{}).Decide(&kernel.Call{Request: kernel.Request{Message: schema.Message{Type: typ}, Syscall: row, Input: in}, Decision: kernel.Decision{Waited: kernel.Waited{Final: final}}})
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ typ, data, want string }{
		{"Crypto.Seal", `{"plaintext":"a"}`, `{"value":"pwenc:v1:|a","kid":"ssh-fp:SHA256:x"}`},
		{"Crypto.Seal", `{"plaintext":"","aad":"k\u000a"}`, `{"value":"pwenc:v1:k\n|","kid":"ssh-fp:SHA256:x"}`},
		{"Crypto.Open", `{"value":"pwenc:v1:|a\"\u0001"}`, `{"plaintext":"a\"\u0001"}`},
		{"Crypto.Open", `{"value":"pwenc:v1:k|a","aad":"k"}`, `{"plaintext":"a"}`},
		{"Crypto.Open", `{"value":"pwenc:v1:k|a"}`, `{"plaintext":"a"}`},
		{"Crypto.Derive", `{}`, `{"kid":"ssh-fp:SHA256:x","alg":"A256GCM"}`},
		{"Crypto.Derive", `{"kid":"ssh-fp:SHA256:x"}`, `{"kid":"ssh-fp:SHA256:x","alg":"A256GCM"}`},
	} {
		got, err := decide(t, shaky{}, tt.typ, tt.data, false)
		if err != nil || string(got.Data) != tt.want {
			t.Errorf("%s %s: got %s, %v, want %s", tt.typ, tt.data, got.Data, err, tt.want)
		}
		if _, invalid := mustLookup(t, tt.typ).Output().Decode(got.Data); invalid != nil {
			t.Errorf("%s answers what its schema does not have: %v", tt.typ, invalid)
		}
	}
}

func mustLookup(t *testing.T, typ string) *schema.Syscall {
	t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		t.Fatalf("no syscall %s", typ)
	}
	return row
}

// TestRefusals: each error says what to do, and repeats no input.
func TestRefusals(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Hidden7Words", 1000)
	for _, tt := range []struct {
		typ, data string
		class     fault.Kind
		text      string
	}{
		{"Crypto.Seal", `{"plaintext":"` + long + `"}`, fault.InvalidInput, "at most 8000"},
		{"Crypto.Seal", `{"plaintext":"` + strings.Repeat(`\u0001`, 2500) + `Hidden7Words"}`, fault.InvalidInput, "fit a line"},
		{"Crypto.Seal", `{"plaintext":"Hidden7Words","aad":"` + strings.Repeat("a", 1025) + `"}`, fault.InvalidInput, "at most 1024"},
		{"Crypto.Open", `{"value":"Hidden7Words"}`, fault.InvalidInput, "broken"},
		{"Crypto.Open", `{"value":"pwenc:v1:k|Hidden7Words","aad":"other"}`, fault.InvalidInput, "something else"},
		{"Crypto.Open", `{"value":"pwenc:v1:|` + strings.Repeat("Hidden7Words", 1300) + `"}`, fault.InvalidInput, "pwos unseal"},
		{"Crypto.Derive", `{"kid":"ssh-fp:SHA256:y"}`, fault.NotFound, "ssh-fp:SHA256:x"},
	} {
		got, err := decide(t, shaky{}, tt.typ, tt.data, false)
		invalid := fault.Of(err)
		if err == nil || got.Data != nil || invalid.Kind != tt.class || !strings.Contains(invalid.Message, tt.text) {
			t.Errorf("%s %.60s: got %.60s, %v, want %v with %q", tt.typ, tt.data, got.Data, err, tt.class, tt.text)
		}
		if err != nil && strings.Contains(err.Error(), "Hidden7Words") {
			t.Errorf("%s: the error repeats what it was given: %v", tt.typ, err)
		}
	}
	if _, err := decide(t, shaky{}, "Crypto.Seal", `{"plaintext":"fails"}`, false); err == nil || fault.Of(err).Kind != fault.Internal {
		t.Errorf("got %v of a sealer that fails", err)
	}
}

// TestPending: a call waits while the key is being prepared, and is told why if its wait times out.
func TestPending(t *testing.T) {
	t.Parallel()
	for typ, data := range map[string]string{
		"Crypto.Seal": `{"plaintext":"a"}`, "Crypto.Open": `{"value":"a"}`, "Crypto.Derive": `{}`,
	} {
		waits, err := decide(t, shaky{crypto.ErrPending}, typ, data, false)
		if err != nil || waits.Wait <= 0 {
			t.Errorf("%s: got %+v, %v", typ, waits, err)
		}
		_, err = decide(t, shaky{crypto.ErrPending}, typ, data, true)
		if invalid := fault.Of(err); invalid.Kind != fault.Timeout || !strings.Contains(invalid.Message, "try again") {
			t.Errorf("%s: got %v", typ, err)
		}
		none := fault.WireInvalidInput.New("no key")
		if _, err := decide(t, shaky{none}, typ, data, false); !errors.Is(err, none) {
			t.Errorf("%s: got %v", typ, err)
		}
	}
}

// TestHasNoState: there is nothing to snapshot, and any snapshot is refused.
func TestHasNoState(t *testing.T) {
	t.Parallel()
	d := crypto.New(shaky{}, nil)
	d.Apply(&kernel.Call{})
	var chunks [][]byte
	testkit.Must(t, d.Snapshot()(func(chunk []byte) error { chunks = append(chunks, chunk); return nil }))
	if diff := cmp.Diff([][]byte(nil), chunks); diff != "" {
		t.Error(diff)
	}
	d.Reset()
	if err := d.Restore([]byte("x")); err == nil {
		t.Error("the domain accepts a snapshot")
	}
}

// TestSecretsAreTagged: the journal keeps neither the text to seal, nor a value that did not open. It keeps the aad
// and sealed values.
func TestSecretsAreTagged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ, data string
		failed    bool
		want      string
	}{
		{"Crypto.Seal", `{"plaintext":"a","aad":"b"}`, false, `{"plaintext":"[redacted]","aad":"b"}`},
		{"Crypto.Seal", `{"plaintext":"a","aad":"b"}`, true, `{"plaintext":"[redacted]","aad":"b"}`},
		{"Crypto.Open", `{"value":"a"}`, true, `{"value":"[redacted]"}`},
		{"Crypto.Open", `{"value":"a"}`, false, `{"value":"a"}`},
	} {
		row := mustLookup(t, tt.typ)
		in, invalid := row.Input().Decode([]byte(tt.data))
		if invalid != nil {
			t.Fatal(invalid)
		}
		if got := string(row.Input().Redact([]byte(tt.data), in, tt.failed)); got != tt.want {
			t.Errorf("%s %s, failed %v: the record has %s, want %s", tt.typ, tt.data, tt.failed, got, tt.want)
		}
	}
	if row := mustLookup(t, "Crypto.Open"); row.Kind != schema.KindQuery || row.Grant != schema.ByName {
		t.Error("Crypto.Open has to be a query, of whose outcome the record keeps no data, and granted by name")
	}
}

// TestFaults: a program decides by the id.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ, data string
		id        fault.ID
	}{
		{"Crypto.Open", `{"value":"pwenc:v1:k|text","aad":"other"}`, fault.CryptoBadValue},
		{"Crypto.Open", `{"value":"pwenc:v1:|` + strings.Repeat("a", 16_000) + `"}`, fault.CryptoBadValue},
		{"Crypto.Derive", `{"kid":"ssh-fp:SHA256:y"}`, fault.CryptoNoKey},
	} {
		if _, err := decide(t, shaky{}, tt.typ, tt.data, false); !errors.Is(err, tt.id) {
			t.Errorf("%s %.60s: %v, want %s", tt.typ, tt.data, err, tt.id)
		}
	}
	if _, err := decide(t, shaky{crypto.ErrPending}, "Crypto.Derive", `{}`, true); !errors.Is(err, fault.CryptoNotReady) {
		t.Errorf("%v, want %s", err, fault.CryptoNotReady)
	}
}
