package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/sshauth"
)

// SealFault is what kept us from sealing or from opening.
type SealFault int

// The faults of a SealError.
const (
	NoSealKey   SealFault = iota // there is no key, it cannot seal, it is not the value's, or its holder refuses
	SealBroken                   // no sealed value, or one that was changed after it was sealed
	AgentSilent                  // the ssh-agent did not answer in time
	SealTooLong                  // more than can be sealed
)

// SealError says why a text was not sealed, or a value not opened. It holds nothing of either.
type SealError struct {
	Fault SealFault
	Err   error
}

// Error is that of Err, which says what to do.
func (e *SealError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *SealError) Unwrap() error { return e.Err }

// Seal seals a plaintext with the first of the user's own keys that can; no kernel is asked. aad goes with the value in the
// clear; nil for none. A kernel with the same key opens the value, and the other way round. It returns a *SealError, or the
// cause of ctx's end.
func (k Keys) Seal(ctx context.Context, plaintext, aad []byte) (string, error) {
	found, err := k.find(ctx)
	if err != nil {
		return "", err
	}
	reasons := found.Skipped
	for _, signer := range found.Signers {
		sealer, err := sshauth.Enroll(ctx, signer)
		if errors.Is(err, &sshauth.Error{Reason: sshauth.Unsealable}) {
			reasons = append(reasons, err.Error())
			continue
		}
		if err != nil {
			return "", sealError(err)
		}
		value, err := sealer.Seal(ctx, plaintext, aad)
		if errors.Is(err, &sshauth.Error{Reason: sshauth.Unsealable}) { // of a key that is enrolled, it is about the length
			return "", &SealError{SealTooLong, err}
		}
		return value, sealError(err)
	}
	return "", &SealError{NoSealKey, fmt.Errorf("there is no key to seal with: %s", strings.Join(reasons, "; "))}
}

// Open opens a sealed value with the one of the user's own keys that sealed it, and returns its plaintext, which the caller
// clears after use, with what went along in the clear. No kernel is asked. It returns a *SealError, or the cause of ctx's end.
func (k Keys) Open(ctx context.Context, value string) (plaintext, aad []byte, err error) {
	sealed, err := sshauth.ParseSealed(value)
	if err != nil {
		return nil, nil, sealError(err)
	}
	found, err := k.find(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, signer := range found.Signers {
		if signer.Key().Fingerprint() != sealed.Fingerprint() {
			continue
		}
		sealer, err := sshauth.Enroll(ctx, signer)
		if err != nil {
			return nil, nil, sealError(err)
		}
		plaintext, aad, err = sealer.Open(ctx, value)
		return plaintext, aad, sealError(err)
	}
	why := fmt.Sprintf("the value was sealed by the key %s, which is not here: add it to the ssh-agent, or name it with --identity", sealed.Fingerprint())
	if len(found.Skipped) > 0 {
		why += " (" + strings.Join(found.Skipped, "; ") + ")"
	}
	return nil, nil, &SealError{NoSealKey, errors.New(why)}
}

func (k Keys) find(ctx context.Context) (*sshauth.Candidates, error) {
	identities, err := k.Identities()
	if err != nil {
		return nil, err
	}
	found, err := identities.Find(ctx)
	return found, sealError(err)
}

// sealError is a refusal of the library's as a *SealError, any other error as it is.
func sealError(err error) error {
	refused, ok := errors.AsType[*sshauth.Error](err)
	if !ok {
		return err
	}
	switch {
	case refused.Reason == sshauth.BrokenSeal:
		return &SealError{SealBroken, err}
	case errors.Is(err, &sshauth.Error{Reason: sshauth.AgentSilent}):
		return &SealError{AgentSilent, err}
	}
	return &SealError{NoSealKey, err}
}
