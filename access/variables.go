package access

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// sealedVariable begins a sealed variable. What follows is a sealed value whose aad is the variable's name.
const sealedVariable = "host-key:"

// Variables seals the environment variables of programs with a key that is derived from the host key, so that the journal has
// none in the clear, and a restart can open them. It needs no SSH key of a person.
type Variables struct {
	held  *Held
	nonce []byte // key of the nonces
}

// NewVariables derives the sealing key from a host key.
func NewVariables(ctx context.Context, key *HostKey) (*Variables, error) {
	signer, err := key.Signer()
	if err != nil {
		return nil, err
	}
	sealer, err := Enroll(ctx, signer)
	if err != nil {
		return nil, err
	}
	held, err := sealer.Hold(ctx)
	if err != nil {
		return nil, err
	}
	// No nonce of a value is zero but by a chance of 2^-96.
	return &Variables{held: held, nonce: held.aeads[0].Seal(nil, make([]byte, nonceSize), []byte("nonces of variables"), nil)}, nil
}

// Held returns the key.
func (v *Variables) Held() *Held { return v.held }

// Seal seals the value of a variable, unless it is plain by its name or value. The same value of the same variable is sealed the same: a call that is repeated under its
// idempotency key has the same body.
func (v *Variables) Seal(name, value string) (string, error) {
	if schema.PlainVariable(name) || schema.PlainValue(value) {
		return value, nil
	}
	if err := sealable([]byte(value), []byte(name)); err != nil {
		return "", err
	}
	sum := hmac.New(sha256.New, v.nonce)
	sum.Write([]byte(name + "\x00" + value))
	return sealedVariable + v.held.key.sealWith(v.held.aeads[0], sum.Sum(nil)[:nonceSize], []byte(value), []byte(name)), nil
}

// longestVariable is the number of characters that a variable may have.
const longestVariable = 8192

// SealAll replaces the values of variables by what the journal has of them, also if it returns an error.
func (v *Variables) SealAll(env map[string]string) (failed error) {
	for name, value := range env {
		sealed, err := "", error(nil)
		switch {
		case strings.ContainsRune(value, 0):
			sealed = "\x00" // it is refused for that
		case utf8.RuneCountInString(value) > longestVariable:
			err = fault.WireInvalidInput.New("Invalid input: env has a variable %s of more than %d characters", name, longestVariable).At("env")
		default:
			sealed, err = v.Seal(name, value)
		}
		env[name], failed = sealed, cmp.Or(failed, err)
	}
	return failed
}

// OpenAll returns variables with their values opened.
func (v *Variables) OpenAll(env map[string]string) (map[string]string, error) {
	opened := make(map[string]string, len(env))
	for name, value := range env {
		var err error
		if opened[name], err = v.Open(name, value); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

// Open opens a variable. A value that is not sealed is plain, or from an older journal, and is returned unchanged.
func (v *Variables) Open(name, value string) (string, error) {
	text, sealed := strings.CutPrefix(value, sealedVariable)
	if !sealed || schema.PlainVariable(name) {
		return value, nil
	}
	plain, aad, err := v.held.Open(text)
	if err != nil || string(aad) != name {
		return "", fault.CryptoCannot.New("the variable %s was sealed with the host key of another kernel: start the program again", name)
	}
	return string(plain), nil
}
