package sshauth

import (
	"fmt"

	"github.com/promptware-os/pwos/schema"
)

// Reason is why something was refused. The message is for people, the Reason for programs.
type Reason string

// What the daemon refuses.
const (
	// Malformed: not in the form that it has to have.
	Malformed Reason = "malformed"
	// WrongNamespace: a signature that was made for something else.
	WrongNamespace Reason = "wrong namespace"
	// WrongHash: a signature over another hash than SHA-256 or SHA-512, or another signature algorithm than its key's.
	WrongHash Reason = "wrong hash"
	// RefusedKey: a key of a type or a size that proves too little.
	RefusedKey Reason = "refused key"
	// UnknownKey: a key that authorized_keys does not have.
	UnknownKey Reason = "unknown key"
	// ExpiredKey: a key past its expiry-time.
	ExpiredKey Reason = "expired key"
	// WrongKey: a signature by another key than the one that was named.
	WrongKey Reason = "wrong key"
	// NoTouch: a security key that signed without being touched.
	NoTouch Reason = "not touched"
	// BadSignature: the signature is not one of the text that was to be signed.
	BadSignature Reason = "bad signature"
	// Spent: a challenge that was answered already, or whose connection is gone.
	Spent Reason = "spent challenge"
	// Late: a challenge or an offer from another time.
	Late Reason = "late"
	// NoKeys: authorized_keys cannot be read or trusted.
	NoKeys Reason = "no authorized keys"
)

// What the client refuses.
const (
	// HostUnproven: the daemon did not prove that it holds its host key, for this very connection.
	HostUnproven Reason = "host not proven"
	// HostChanged: the daemon has another host key than it had.
	HostChanged Reason = "host key changed"
	// Downgraded: a daemon that proved itself before does not any more.
	Downgraded Reason = "downgraded"
	// NoIdentity: there is no key to show.
	NoIdentity Reason = "no identity"
	// BadKeyFile: a private key file that cannot be used.
	BadKeyFile Reason = "bad key file"
	// AgentSilent: the ssh-agent did not answer in time.
	AgentSilent Reason = "agent silent"
	// AgentRefused: the ssh-agent does not sign: it is locked, or its user said no.
	AgentRefused Reason = "agent refused"
	// AgentLied: what the ssh-agent returned is no signature by the key that it was asked for.
	AgentLied Reason = "agent lied"
)

// What Seal and Open refuse.
const (
	// Unsealable: a key whose signatures differ from one time to the next.
	Unsealable Reason = "key cannot seal"
	// OtherSeal: a value that another key has sealed.
	OtherSeal Reason = "sealed by another key"
	// BrokenSeal: a value that was changed after it was sealed.
	BrokenSeal Reason = "broken seal"
)

// Error is a refusal. Its message says what to do, and holds no secret and nothing of the daemon's inside; it may be
// shown to whoever is at the other end. In its chain is a *schema.Error with the same message.
type Error struct {
	Reason      Reason
	Message     string
	Fingerprint string // of the key at fault, "SHA256:…"; empty where there is none
	Err         error  // what lies behind it, for a log; never shown
}

// refuse returns an *Error of the given reason.
func refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// of says which key the error is about.
func (e *Error) of(key PublicKey) *Error {
	e.Fingerprint = key.Fingerprint()
	return e
}

// because keeps what lies behind the error.
func (e *Error) because(err error) *Error {
	e.Err = err
	return e
}

// Error returns the message alone.
func (e *Error) Error() string { return e.Message }

// Is reports whether target is an *Error of the same Reason, so that errors.Is(err, &Error{Reason: Late}) asks for it.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason
}

// Unwrap returns the error as it goes over the wire, and what lies behind it.
func (e *Error) Unwrap() []error {
	shown := &schema.Error{Kind: e.class(), Message: e.Message}
	if e.Err == nil {
		return []error{shown}
	}
	return []error{shown, e.Err}
}

// class is the situation of PROTOCOL 3 that the reason belongs to. What is wrong with a key to sign with goes over the wire
// where a daemon seals.
func (e *Error) class() schema.Class {
	switch e.Reason {
	case Unsealable, OtherSeal, BrokenSeal, NoIdentity, BadKeyFile:
		return schema.InvalidInput
	case AgentSilent:
		return schema.Timeout
	case AgentRefused, AgentLied:
		return schema.Upstream
	}
	return schema.Unauthenticated
}
