package memory

import (
	"bytes"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// seal begins every sealed value (PROTOCOL 5).
const seal = "pwenc:v1:"

// inVault reports whether a key's values must be sealed.
func inVault(key string) bool { return strings.HasPrefix(key, "vault/") }

// sealed reports whether a raw JSON value is a string that begins with the seal, however its characters are written.
func sealed(value schema.Value) bool {
	if bytes.HasPrefix(value, []byte(`"`+seal)) {
		return true
	}
	text, err := schema.TypeOf[string]().Decode(value)
	return err == nil && strings.HasPrefix(*text.(*string), seal)
}

// unsealed refuses a value in the clear. It does not repeat it: it may be the secret.
func unsealed(key string) *schema.Error {
	return &schema.Error{
		Kind: schema.InvalidInput, Field: "value",
		Message: "Invalid input: value must be a string that begins with " + seal + " to be stored under /" + key +
			": vault/ holds sealed values only; seal it first, or store it under another key",
	}
}
