package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// Seal seals a plaintext with the first suitable key of the user, without a kernel. aad is stored with the value
// unencrypted; nil for none. A kernel with the same key can open the value, and Open can open a kernel's. It returns
// a fault, or the cause of ctx's end.
func (k Keys) Seal(ctx context.Context, plaintext, aad []byte) (string, error) {
	found, err := k.find(ctx)
	if err != nil {
		return "", err
	}
	reasons := found.Skipped
	for _, signer := range found.Signers {
		sealer, err := access.Enroll(ctx, signer)
		if errors.Is(err, fault.CryptoCannot) {
			reasons = append(reasons, err.Error())
			continue
		}
		if err != nil {
			return "", sealError(err)
		}
		value, err := sealer.Seal(ctx, plaintext, aad)
		if errors.Is(err, fault.CryptoCannot) { // for an enrolled key the cause is the length of the plaintext
			return "", err
		}
		return value, sealError(err)
	}
	return "", fault.SealNoKey.New("there is no key to seal with: %s", strings.Join(reasons, "; "))
}

// Open opens a sealed value with the user's key that sealed it, without a kernel, and returns the plaintext, which
// the caller clears after use, and the aad. It returns a fault, or the cause of ctx's end.
func (k Keys) Open(ctx context.Context, value string) (plaintext, aad []byte, err error) {
	sealed, err := access.ParseSealed(value)
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
		sealer, err := access.Enroll(ctx, signer)
		if err != nil {
			return nil, nil, sealError(err)
		}
		plaintext, aad, err = sealer.Open(ctx, value)
		return plaintext, aad, sealError(err)
	}
	why := fmt.Sprintf("the value was sealed with the key %s, which is not available: add it to the ssh-agent, or name it with --identity", sealed.Fingerprint())
	if len(found.Skipped) > 0 {
		why += " (" + strings.Join(found.Skipped, "; ") + ")"
	}
	return nil, nil, fault.SealNoKey.New("%s", why)
}

func (k Keys) find(ctx context.Context) (*access.Candidates, error) {
	identities, err := k.Identities()
	if err != nil {
		return nil, err
	}
	found, err := identities.Find(ctx)
	return found, sealError(err)
}

// sealError rewords a fault of sealing or opening for a client.
func sealError(err error) error {
	failure, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return err
	}
	id := fault.SealNoKey
	switch {
	case failure.ID == fault.CryptoBroken:
		id = fault.SealBroken
	case errors.Is(err, fault.AuthAgentSilent):
		id = fault.SealSilent
	}
	return id.New("%s", err.Error()).Wrap(err)
}
