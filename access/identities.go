package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// Identities says where the keys are that a program may sign with.
type Identities struct {
	// Identity is the path of the one key to use, private or public; an ssh-agent that holds it is preferred to the file, as
	// it asks for no passphrase. Empty: any key of the agent, then any of Files.
	Identity string
	// AgentSocket is $SSH_AUTH_SOCK; empty: there is no agent.
	AgentSocket string
	// Files are the key files to try; those that are not there are passed over. See DefaultKeyFiles.
	Files []string
	// Passphrase asks for the passphrase of a key file. Nil: nobody can be asked.
	Passphrase Passphrase
	// ListTime bounds how long an agent may take to list its keys, SignTime how long to sign. Default 3 s and 10 s.
	ListTime, SignTime time.Duration
}

// Candidates are the keys that were found, the one to try first in front.
type Candidates struct {
	Signers []*Signer
	// Skipped says why a key or the agent was passed over, a sentence each.
	Skipped []string
}

// Find looks for keys. No passphrase is asked for yet. It returns an *fault.Fault where there is none to sign with, which wraps
// the agent's where that is the reason, or ctx's cause.
func (i *Identities) Find(ctx context.Context) (*Candidates, error) {
	var agentErr error
	var held []*Signer
	if i.AgentSocket != "" {
		keys := &agentKeys{socket: i.AgentSocket, listTime: i.ListTime, signTime: i.SignTime}
		if held, agentErr = keys.list(ctx); agentErr == nil && len(held) == 0 {
			agentErr = fault.AuthNoIdentity.New("the ssh-agent has no key that is accepted: add one with ssh-add, or unlock it with \"ssh-add -X\"")
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if i.Identity != "" {
		return i.named(held, agentErr)
	}
	c := &Candidates{Signers: held}
	c.skip(agentErr)
	for _, path := range i.Files {
		key, signer, err := readKeyFile(path, i.Passphrase)
		switch {
		case errors.Is(err, fault.AuthNoIdentity): // most of them are not there
		case err != nil:
			c.skip(err)
		case slices.ContainsFunc(c.Signers, func(s *Signer) bool { return s.key == key }): // the agent has it
		case signer == nil:
			c.skip(badKeyFile(path, "holds no private key that can be used from a file"))
		default:
			c.Signers = append(c.Signers, signer)
		}
	}
	if len(c.Signers) == 0 {
		return nil, noIdentity(c.Skipped).Wrap(agentErr)
	}
	return c, nil
}

// named finds the one key that was asked for.
func (i *Identities) named(held []*Signer, agentErr error) (*Candidates, error) {
	key, signer, err := readKeyFile(i.Identity, i.Passphrase)
	if err != nil {
		return nil, err
	}
	if n := slices.IndexFunc(held, func(s *Signer) bool { return s.key == key }); n >= 0 {
		signer = held[n]
	}
	c := &Candidates{}
	if signer == nil {
		c.skip(badKeyFile(i.Identity, "holds no private key that can be used from a file, and the ssh-agent does not have it").With("key", key.Fingerprint()))
		c.skip(agentErr)
		return nil, noIdentity(c.Skipped).With("key", key.Fingerprint()).Wrap(agentErr)
	}
	c.Signers = []*Signer{signer}
	return c, nil
}

func (c *Candidates) skip(err error) {
	if err != nil {
		c.Skipped = append(c.Skipped, err.Error())
	}
}

// noIdentity is the error of there being no key to sign with, and says why each was passed over.
func noIdentity(skipped []string) *fault.Fault {
	why := ""
	if len(skipped) > 0 {
		why = " (" + strings.Join(skipped, "; ") + ")"
	}
	return fault.AuthNoIdentity.New("there is no key to sign with%s: make one with \"ssh-keygen -t ed25519\", add one with ssh-add, or name one with --identity", why)
}
