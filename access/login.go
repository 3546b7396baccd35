package access

import (
	"context"
	"slices"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// Login is the client's side of one prologue. It signs only the text of a Binding that it made
// itself, and only for a kernel that has proven to hold the known host key.
type Login struct {
	// Channel is the connection to the daemon.
	Channel Channel
	// Known remembers the kernels' host keys.
	Known KnownKernels
	// Identities says where the keys are.
	Identities *Identities
	// Prefer, if not nil, selects the key to try first, such as one in authorized_keys: a
	// connection can try only one.
	Prefer func(PublicKey) bool
	// Pick, if not nil, returns the key to sign with, in place of Identities and Prefer: a program
	// that logs in repeatedly finds its keys once.
	Pick func(context.Context) (*Signer, error)
	// Now is the clock.
	Now func() time.Time
}

// Answer is a client's answer to a prologue.
type Answer struct {
	Data  []byte    // of the reply
	Key   PublicKey // that signed; zero in open mode
	From  string    // where the private key is: "ssh-agent" or a file's path
	Host  PublicKey // of the kernel; zero in open mode
	Fresh bool      // the kernel was pinned by this login
}

// Answer answers the prologue whose frame had the given data, and the time issued in its metadata.
// It returns a fault if it does not trust the daemon or has no key, or ctx's cause; then the caller
// must send nothing.
func (l *Login) Answer(ctx context.Context, offer []byte, issued time.Time) (*Answer, error) {
	o, binding, proof, err := parseOffer(offer)
	if err != nil {
		return nil, err
	}
	known, err := l.Known.Lookup(l.Channel.kernel())
	if err != nil {
		return nil, err
	}
	if o.Scheme == schemeNone {
		if _, remote := l.Channel.(TLS); remote {
			return nil, fault.AuthDowngraded.New("%s asks for no key, which no kernel does over TLS: another program answers in its place", l.Channel.kernel())
		}
		if !known.IsZero() {
			return nil, fault.AuthDowngraded.New("the kernel at %s asks for no key, though it did before: its authorized_keys was removed, or another program answers in its place. "+
				"If you know why, drop its key with %q", l.Channel.kernel(), forget(l.Channel.kernel())).With("key", known.Fingerprint())
		}
		return &Answer{Data: []byte("{}")}, nil
	}
	binding.Channel, binding.Issued = l.Channel, issued
	if !known.IsZero() && known != binding.HostKey {
		return nil, hostChanged(l.Channel.kernel(), known, binding.HostKey)
	}
	if err := l.checkProof(binding, proof); err != nil {
		return nil, err
	}
	signer, err := l.pick(ctx)
	if err != nil {
		return nil, err
	}
	text, err := binding.Text(Client)
	if err != nil {
		return nil, err
	}
	fresh, err := l.Known.Pin(ctx, l.Channel.kernel(), binding.HostKey)
	if err != nil {
		return nil, err
	}
	sig, err := signer.Sign(ctx, Namespace, text)
	if err != nil {
		return nil, err
	}
	data := marshalData(&answerData{PublicKey: signer.key.String(), Signature: sig.Armor()})
	return &Answer{Data: data, Key: signer.key, From: signer.source, Host: binding.HostKey, Fresh: fresh}, nil
}

// Host returns the host key of the kernel that made the offer, known or not, once the kernel has
// proven that it holds that key; the zero key in open mode. Nothing is signed or remembered.
func (l *Login) Host(offer []byte, issued time.Time) (PublicKey, error) {
	o, binding, proof, err := parseOffer(offer)
	if err != nil || o.Scheme == schemeNone {
		return PublicKey{}, err
	}
	binding.Channel, binding.Issued = l.Channel, issued
	if err := l.checkProof(binding, proof); err != nil {
		return PublicKey{}, err
	}
	return binding.HostKey, nil
}

// checkProof refuses a daemon that does not hold its host key, or whose proof was made for another
// connection: a recorded or a relayed one.
func (l *Login) checkProof(b *Binding, proof *Signature) error {
	if err := checkTime(b.Issued, l.Now()); err != nil {
		return err
	}
	text, err := b.Text(Host)
	if err != nil {
		return err
	}
	if session, ok := l.Channel.(TLS); ok && session.Shown != b.HostKey {
		return fault.AuthHost.New("the certificate of %s is of another key than its host key: nothing was signed", session.Name).With("key", b.HostKey.Fingerprint())
	}
	if proof.Key != b.HostKey {
		return fault.AuthHost.New("the daemon's proof is by another key than its host key: nothing was signed").With("key", b.HostKey.Fingerprint())
	}
	if err := proof.Verify(HostNamespace, text, false); err != nil {
		return fault.AuthHost.New("the daemon's proof does not match this connection: %s. Nothing was signed", l.Channel.relayed()).With("key", b.HostKey.Fingerprint()).Wrap(err)
	}
	return nil
}

// pick returns the key to sign with.
func (l *Login) pick(ctx context.Context) (*Signer, error) {
	if l.Pick != nil {
		return l.Pick(ctx)
	}
	found, err := l.Identities.Find(ctx)
	if err != nil {
		return nil, err
	}
	if l.Prefer != nil {
		if i := slices.IndexFunc(found.Signers, func(s *Signer) bool { return l.Prefer(s.key) }); i >= 0 {
			return found.Signers[i], nil
		}
	}
	return found.Signers[0], nil
}
