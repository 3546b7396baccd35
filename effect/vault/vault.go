package vault

import (
	"context"
	"errors"
	"strings"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/crypto"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Vault has the secrets in the memory of the kernel's own origin, sealed with its key or its host key.
type Vault struct {
	Key    *Key
	Host   *access.Held // nil: there is none
	Kernel interface {
		Do(ctx context.Context, own kernel.Own) (kernel.Answer, error)
	}
}

// Open opens the secret that is stored under a key: a text without control characters.
func (v *Vault) Open(ctx context.Context, key string) (string, error) {
	stored, err := v.Kernel.Do(ctx, kernel.Own{Request: schema.MemoryGet.With(&schema.MemoryGetInput{Key: key})})
	if err != nil {
		return "", err
	}
	sealed, invalid := schema.TypeOf[string]().Decode(stored.Data)
	if invalid != nil {
		return "", invalid
	}
	text, aad, err := v.unseal(ctx, *sealed.(*string))
	if err != nil {
		return "", err
	}
	defer clear(text)
	if len(aad) > 0 && strings.TrimPrefix(string(aad), "/") != key {
		return "", errors.New("it is sealed for something else")
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" || strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("it is empty or has a control character, so that no header can hold it")
	}
	return secret, nil
}

// unseal opens a sealed value: one of the host key needs no other key.
func (v *Vault) unseal(ctx context.Context, sealed string) (text, aad []byte, err error) {
	if v.Host != nil {
		if text, aad, err = v.Host.Open(sealed); err == nil || !errors.Is(err, fault.CryptoOtherKey) {
			return text, aad, err
		}
	}
	sealer, err := v.Key.Await(ctx)
	if err != nil {
		return nil, nil, err
	}
	return sealer.Open(sealed)
}

// sealer returns what a stored value was sealed with.
func (v *Vault) sealer(ctx context.Context, stored schema.Value) (crypto.Sealer, error) {
	if sealed, invalid := schema.TypeOf[string]().Decode(stored); v.Host != nil && invalid == nil {
		if text, _, err := v.Host.Open(*sealed.(*string)); err == nil {
			clear(text)
			return v.Host, nil
		}
	}
	return v.Key.Await(ctx)
}

// Replace stores next under a key, unless the stored secret is no longer before.
func (v *Vault) Replace(ctx context.Context, key, before, next string) error {
	stored, err := v.Kernel.Do(ctx, kernel.Own{Request: schema.MemoryGet.With(&schema.MemoryGetInput{Key: key})})
	if err != nil {
		return err
	}
	if is, err := v.Open(ctx, key); err != nil || is != before {
		return errors.Join(errors.New("it was replaced meanwhile"), err)
	}
	sealer, err := v.sealer(ctx, stored.Data)
	if err != nil {
		return err
	}
	sealed, err := sealer.Seal([]byte(next), []byte(key))
	if err != nil {
		return err
	}
	value, err := schema.Marshal(sealed)
	if err != nil {
		return err
	}
	_, err = v.Kernel.Do(ctx, kernel.Own{Request: schema.MemoryCompareAndSet.With(&schema.MemoryCompareAndSetInput{
		MemorySetInput: schema.MemorySetInput{Key: key, Value: value}, Expected: stored.Data,
	})})
	return err
}
