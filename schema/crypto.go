package schema

// Crypto is the domain of sealed values.
const Crypto Domain = "crypto"

// The journal has no secret of this domain: the input of Crypto.Seal is withheld by its tag, and Crypto.Open is a query, whose answer
// is not journaled. The sealed answer of Crypto.Seal is journaled. Crypto.Seal is a command as in MESSAGE 4.2.1, and because a query
// must return the same answer each time (MESSAGE 4.2.2).

// SealInput is the data of Crypto.Seal.
type SealInput struct {
	Target
	Plaintext string  `json:"plaintext" keep:"never" doc:"Text to seal, at most 8000 bytes together with aad. Encode binary data first, for example in base64."`
	Key       *string `json:"key,omitzero" keep:"always" enum:"host" doc:"host: seal with the host key of this kernel, which needs no SSH key of a person. Only the kernel opens such a value, for upstreams; Crypto.Open does not. Default: the key that the kernel has for secrets."`
	AAD       *string `json:"aad,omitzero" keep:"always" minlen:"1" doc:"Additional data that is authenticated but not encrypted, at most 1024 bytes, such as the key that the value is stored under. It is journaled, so it must not be a secret."`
}

// SealOutput is the answer of Crypto.Seal.
type SealOutput struct {
	Value string `json:"value" keep:"always" doc:"The sealed value, which begins with pwenc:v1:."`
	KeyID string `json:"kid" keep:"always" doc:"Key that it was sealed with, such as ssh-fp:SHA256:…."`
}

// OpenInput is the data of Crypto.Open.
type OpenInput struct {
	Target
	Value string  `json:"value" keep:"applied" minlen:"1" doc:"The sealed value, from pwenc:v1: to its end."`
	AAD   *string `json:"aad,omitzero" keep:"always" minlen:"1" doc:"The aad that the value must have. Default: any."`
}

// Confidential returns true: a value that cannot be opened may be a secret that is not sealed.
func (in *OpenInput) Confidential() bool { return true }

// OpenOutput is the answer of Crypto.Open.
type OpenOutput struct {
	Plaintext string `json:"plaintext" keep:"never" doc:"The text that was sealed."`
}

// DeriveInput is the data of Crypto.Derive.
type DeriveInput struct {
	Target
	KeyID *string `json:"kid,omitzero" keep:"always" minlen:"1" doc:"Id of the key that the kernel must seal with, such as the one of an existing value. Default: the current key."`
}

// DeriveOutput is the answer of Crypto.Derive.
type DeriveOutput struct {
	KeyID string `json:"kid" keep:"always" doc:"Key that the kernel seals with, such as ssh-fp:SHA256:…: the fingerprint of the SSH key that it is derived from."`
	Alg   string `json:"alg" keep:"always" doc:"Cipher that it seals with, A256GCM."`
}

// The syscalls of this file.
var (
	CryptoSeal = NewCommand[SealInput, SealOutput](Syscall{
		Type: "Crypto.Seal", Domain: Crypto, Alone: true,
		Script:      "scripts/seal.txtar",
		Description: "Seals a text with the kernel's key. The sealed value may be stored and shown, and vault/ takes only such values. It differs each time, so an idempotency key has no effect.",
	})

	CryptoOpen = NewQuery[OpenInput, OpenOutput](Syscall{
		Type: "Crypto.Open", Domain: Crypto, Grant: ByName, Alone: true,
		Script:      "scripts/seal.txtar",
		Description: "Opens a value that was sealed with the kernel's key. An agent needs a grant that names it: neither Crypto.* nor * includes it.",
	})

	CryptoDerive = NewQuery[DeriveInput, DeriveOutput](Syscall{
		Type: "Crypto.Derive", Domain: Crypto, Alone: true,
		Script:      "scripts/seal.txtar",
		Description: "Makes the kernel's sealing key ready, and names it. The key itself never leaves the kernel.",
	})
)
