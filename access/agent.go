package access

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// defaultListTime is how long an ssh-agent may take to list its keys, which asks no person.
	defaultListTime = 3 * time.Second
	// defaultSignTime is how long an ssh-agent may take to sign: a person may have to touch a key
	// or to confirm (ssh-add -c). The daemon waits no longer (PROTOCOL 4).
	defaultSignTime = 10 * time.Second

	// maxAgentKeys bounds how many keys of an agent are examined.
	maxAgentKeys = 256
)

// agentKeys is the ssh-agent at a socket. Each request has its own connection.
type agentKeys struct {
	socket   string
	listTime time.Duration
	signTime time.Duration
}

// ask sends a request to the agent and waits at most patience for its answer, or until ctx ends.
func (a *agentKeys) ask(ctx context.Context, patience time.Duration, question func(agent.ExtendedAgent) error) error {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(patient, "unix", a.socket)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case patient.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded): // the dialer's own timer may be first
			return silent(patience, err)
		}
		return fault.AuthAgentSilent.New("no ssh-agent answers at SSH_AUTH_SOCK: start one, or name a key file with --identity").Wrap(err)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(patient, func() {
		defer close(interrupted)
		_ = conn.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection, which no goroutine waits for
	})
	// If it could close the connection, the library would read it in its own goroutine, which never
	// ends if the agent sends unsolicited answers.
	err = question(agent.NewClient(struct{ io.ReadWriter }{conn}))
	if !stop() {
		<-interrupted
	}
	err = errors.Join(err, conn.Close())
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case patient.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded):
		return silent(patience, err)
	}
	return err
}

// silent is the error of an agent that did not answer in time.
func silent(patience time.Duration, err error) error {
	return fault.AuthAgentSilent.New("the ssh-agent did not answer within %v: touch the key or confirm when asked, restart the agent, or name a key file with --identity",
		patience).Wrap(err)
}

// list returns a signer for each key of the agent that is accepted. A locked agent lists none.
func (a *agentKeys) list(ctx context.Context) ([]*Signer, error) {
	var held []*agent.Key
	err := a.ask(ctx, cmp.Or(a.listTime, defaultListTime), func(client agent.ExtendedAgent) (err error) {
		held, err = client.List()
		return err
	})
	if err != nil {
		if _, ours := errors.AsType[*fault.Fault](err); !ours && ctx.Err() == nil {
			err = fault.AuthAgentNo.New("the ssh-agent does not list its keys: restart it, or name a key file with --identity").Wrap(err)
		}
		return nil, err
	}
	var signers []*Signer
	for _, k := range held[:min(len(held), maxAgentKeys)] {
		if key, failure := parseKeyBlob(k.Blob); failure == nil {
			signers = append(signers, a.signer(key))
		}
	}
	return signers, nil
}

// signer is a key that the agent holds.
func (a *agentKeys) signer(key PublicKey) *Signer {
	return &Signer{key: key, source: "ssh-agent", sign: func(ctx context.Context, data []byte, algorithm string) (sig *ssh.Signature, err error) {
		var flags agent.SignatureFlags
		switch algorithm {
		case ssh.KeyAlgoRSASHA256:
			flags = agent.SignatureFlagRsaSha256
		case ssh.KeyAlgoRSASHA512:
			flags = agent.SignatureFlagRsaSha512
		}
		err = a.ask(ctx, cmp.Or(a.signTime, defaultSignTime), func(client agent.ExtendedAgent) (err error) {
			sig, err = client.SignWithFlags(key.parsed(), data, flags)
			return err
		})
		if err != nil {
			if _, ours := errors.AsType[*fault.Fault](err); !ours && ctx.Err() == nil {
				err = fault.AuthAgentNo.New("the ssh-agent refuses to sign with %s: unlock it with \"ssh-add -X\", confirm when asked, or name a key file with --identity",
					key.Fingerprint()).Wrap(err)
			}
			return nil, attributed(err, key)
		}
		return sig, nil
	}}
}

// attributed names the key in an error that is a *fault.Fault.
func attributed(err error, key PublicKey) error {
	if e, ok := errors.AsType[*fault.Fault](err); ok {
		return e.With("key", key.Fingerprint())
	}
	return err
}
