// Package keyed is signature mode (PROTOCOL 4): it admits holders of keys in authorized_keys.
package keyed

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Doer makes calls of the kernel itself.
type Doer interface {
	Do(ctx context.Context, own kernel.Own) (kernel.Answer, error)
}

// Options are what signature mode needs of a kernel.
type Options struct {
	Keys string         // path of authorized_keys
	Host *access.Signer // proves the kernel to clients

	Kernel    Doer
	Processes kernel.Processes
	Tokens    kernel.Tokens
	Living    func(func(*schema.Descriptor)) // visits the living processes; called by New only
	Pools     []string                       // that exist
	Origin    string                         // of agents of keys whose line has none
	Note      func(schema.Request)           // journals a step
	Log       *slog.Logger
}

// Mode admits holders of keys in authorized_keys, following changes of that file while the daemon
// runs.
type Mode struct {
	log      *slog.Logger
	source   *access.Source
	verifier access.Verifier
	failures access.Failures
	agents   *agents
	refusals refusals
	logged   atomic.Pointer[access.AuthorizedKeys] // whose refused lines were logged last
	warned   atomic.Pointer[string]                // the trouble with the file that was logged last
}

var _ access.Authenticator = (*Mode)(nil)

// New finds the agents of keys, before the first call to the kernel, and reads the authorized keys
// for the first time: a daemon that could admit no client reports it at its start.
func New(o Options) (*Mode, error) {
	k := &Mode{log: o.Log, source: access.NewSource(o.Keys, time.Now), agents: newAgents(&o, process.KeyIntent, "authorized_keys"), refusals: refusals{log: o.Log, note: o.Note}}
	k.verifier = access.Verifier{Host: o.Host, Keys: k.keys, Now: time.Now}
	keys, err := k.keys()
	if err != nil {
		return nil, err
	}
	o.Log.Info("signature mode", "authorized_keys", o.Keys, "keys", len(keys.Keys()), "host_key", o.Host.Key().Fingerprint())
	if len(keys.Keys()) == 0 {
		o.Log.Warn("nobody can log in: no line of the authorized keys admits a key", "authorized_keys", o.Keys)
	}
	return k, nil
}

// keys returns the keys that are authorized now, and logs the refused lines when they have changed.
func (k *Mode) keys() (*access.AuthorizedKeys, error) {
	keys, err := k.source.Load()
	if err != nil {
		return nil, fmt.Errorf("signature mode: %w", err)
	}
	warning := Trouble(k.source)
	if last := k.warned.Swap(&warning); warning != "" && (last == nil || *last != warning) {
		k.log.Error("authorized keys: " + warning)
	}
	if k.logged.Swap(keys) != keys {
		for _, line := range keys.Refused() {
			k.log.Warn("line of authorized keys refused", "line", line.Line, "key", line.Fingerprint, "reason", line.Reason)
		}
		for _, key := range keys.Keys() {
			if why := k.agents.check(key); why != nil {
				k.log.Warn("line of authorized keys refused", "line", key.Line, "key", key.Key.Fingerprint(), "reason", why.Text())
			}
		}
	}
	return keys, nil
}

// Trouble returns the problem with a key file that needs the operator, or "".
func Trouble(source *access.Source) string {
	err := source.Trouble()
	if err == nil {
		return ""
	}
	return "the keys of an earlier reading still count, since the file says the same: " + err.Error()
}

// Trouble returns the problem with authorized_keys that needs the operator, or "".
func (k *Mode) Trouble() string { return Trouble(k.source) }

// End records the refused logins that were only counted until now. Nothing is counted after it.
func (k *Mode) End() { k.refusals.close() }

// Close closes the file of keys.
func (k *Mode) Close() error { return k.source.Close() }

// Offer implements access.Authenticator.
func (k *Mode) Offer(ctx context.Context, peer access.Peer, channel access.Channel) (access.Offer, error) {
	challenge, err := k.verifier.Challenge(ctx, channel)
	if err != nil {
		return access.Offer{}, err
	}
	return access.Offer{
		Data:   challenge.Data(),
		Issued: challenge.Issued(),
		Verify: func(answer []byte) (access.Identity, error) {
			identity, err := k.judge(challenge, answer)
			if err != nil {
				k.failed(peer, err)
				return access.Identity{}, err
			}
			k.failures.Succeeded(peer.UID)
			return identity, nil
		},
		Hold: func() (time.Duration, func()) { return k.failures.Failed(peer.UID, time.Now()) },
		Done: challenge.Cancel,
	}, nil
}

// judge returns the identity that an answer proves.
func (k *Mode) judge(challenge *access.Challenge, answer []byte) (access.Identity, error) {
	key, err := challenge.Verify(answer)
	if err != nil {
		return access.Identity{}, err
	}
	identity := access.Identity{Key: key, Agent: kernel.Operator}
	if key.Agent != nil {
		if identity.Agent, err = k.agents.of(key); err != nil {
			return access.Identity{}, err
		}
	}
	return identity, nil
}

// failed records a refused login: the public facts in the journal, and in the log also the cause.
func (k *Mode) failed(peer access.Peer, err error) {
	record := &schema.LoginFailedInput{Reason: "internal error"}
	if peer.Address.IsValid() {
		record.Address = peer.Address.String()
	} else {
		uid, pid := int64(peer.UID), int64(peer.PID)
		record.UID, record.OSPID = &uid, &pid
	}
	attrs := []any{"error", err}
	if refused := fault.Of(err); refused.ID.Domain() == "auth" {
		// The journal keeps its first wording: auth.bad_signature is "bad signature".
		record.Reason = strings.ReplaceAll(strings.TrimPrefix(string(refused.ID), "auth."), "_", " ")
		record.Fingerprint = refused.Detail("key")
		if refused.Err != nil {
			attrs = append(attrs, "cause", refused.Err)
		}
	}
	k.refusals.refused(record, attrs...)
}
