package memory

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// maxKey is the longest key in bytes, without its leading slash.
const maxKey = 1024

// parseKey returns a key in its stored form, without the leading slash, or says why it is not a key (PROTOCOL 5).
func parseKey(written string) (string, error) {
	key := trim(written)
	if len(key) > maxKey {
		return "", badKey("must have at most %d bytes, not %d: store a long text as the value, under a short key", maxKey, len(key))
	}
	// A relative path would have several spellings, and could lead out of vault/ or into proc/.
	for rest, more := key, true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch segment {
		case "":
			return "", badKey("must not have an empty segment: %q: write it like notes/1, without a slash at the end or two in a row", written)
		case ".", "..":
			return "", badKey("must not have a segment %q: %q: keys are whole names, nothing is resolved", segment, written)
		}
	}
	if strings.ContainsFunc(key, unicode.IsControl) {
		return "", badKey("must not have control characters: %q", written)
	}
	return key, nil
}

func badKey(format string, args ...any) error {
	return fault.MemoryBadKey.New("Invalid input: key "+format, args...).At("key")
}

// trim removes the leading slash, which has no meaning.
func trim(written string) string { return strings.TrimPrefix(written, "/") }

// writable returns the key, or why a value must not be stored under it. Stored values have no quota.
func writable(written string, value schema.Value) (string, error) {
	key, err := parseKey(written)
	if err != nil {
		return "", err
	}
	if err := kernel.CheckName("key", key); err != nil {
		return "", err
	}
	switch {
	case inProc(key):
		return "", readOnly(key)
	case inVault(key) && !sealed(value):
		return "", unsealed(key)
	}
	return key, nil
}

func readOnly(key string) error {
	return fault.MemoryReadOnly.New("Operation not allowed: /%s cannot be written: the kernel makes proc/ itself, and it is read-only", key).With("key", "/"+key)
}

// seal begins every sealed value (PROTOCOL 5).
const seal = "pwenc:v1:"

// inVault reports whether a key's values must be sealed.
func inVault(key string) bool { return strings.HasPrefix(key, "vault/") }

// sealed reports whether a raw JSON value is a string that begins with the seal, however its characters are escaped.
func sealed(value schema.Value) bool {
	if bytes.HasPrefix(value, []byte(`"`+seal)) {
		return true
	}
	text, err := schema.TypeOf[string]().Decode(value)
	return err == nil && strings.HasPrefix(*text.(*string), seal)
}

// unsealed refuses a value in the clear. It does not repeat the value, which may be the secret.
func unsealed(key string) error {
	return fault.MemoryUnsealed.New("Invalid input: value must be a string that begins with %s to be stored under /%s"+
		": vault/ holds sealed values only; seal it first, or store it under another key", seal, key).At("value").With("key", "/"+key)
}
