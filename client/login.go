package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// maxOffers bounds the keys that are offered to a kernel, each on its own connection.
const maxOffers = 6

// login authenticates to one kernel, on any number of connections. It looks up the keys once, when the kernel first
// asks for one, so that the user types a passphrase only once.
type login struct {
	keys  Keys
	route route
	// rest pauses the timeout of Dial while a key signs. nil: there is no timeout.
	rest func() (resume func())

	mu     sync.Mutex // held while keys are looked up
	found  *access.Candidates
	next   int     // index in found.Signers of the next to offer
	tried  []Offer // refused by the kernel
	answer *access.Answer
}

// Offer is a key that was offered to a kernel.
type Offer struct {
	Key  access.PublicKey
	From string // where its private part is: "ssh-agent" or a file's path
}

// String formats the key for people.
func (o Offer) String() string {
	return fmt.Sprintf("%s (%s, from %s)", o.Key.Fingerprint(), o.Key.Type(), o.From)
}

// greet runs the prologue on a connection. It reports whether the kernel asked for a key; the kernel then does not
// acknowledge a valid answer (PROTOCOL 4), so confirm must follow.
func (l *login) greet(ctx context.Context, conn access.Lines, channel access.Channel) (asked bool, err error) {
	err = access.ClientPrologue(ctx, conn, func(offer []byte, issued time.Time) ([]byte, error) {
		if l.rest != nil {
			defer l.rest()()
		}
		answer, err := l.answerTo(ctx, channel, offer, issued)
		if err != nil {
			return nil, err
		}
		asked = !answer.Key.IsZero()
		return answer.Data, nil
	})
	return asked, err
}

func (l *login) answerTo(ctx context.Context, channel access.Channel, offer []byte, issued time.Time) (*access.Answer, error) {
	name, err := l.route.name()
	if err != nil {
		return nil, err
	}
	proof := access.Login{
		Channel: channel, Known: l.keys.known(), Pick: l.pick, Now: time.Now,
	}
	answer, err := proof.Answer(ctx, offer, issued)
	if err != nil {
		return nil, err
	}
	if answer.Fresh && l.keys.Notice != nil {
		l.keys.Notice(fmt.Sprintf("trusting the kernel at %s from now on: its host key is %s", name, answer.Host.Fingerprint()))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = answer
	return answer, nil
}

// pick returns the next key to offer.
func (l *login) pick(ctx context.Context) (*access.Signer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil {
		identities, err := l.keys.Identities()
		if err != nil {
			return nil, err
		}
		found, err := identities.Find(ctx)
		if err != nil {
			return nil, err
		}
		likelyFirst(found.Signers)
		l.found = found
	}
	return l.found.Signers[l.next], nil
}

// likelyFirst moves the keys in the kernel's usual authorized_keys to the front, if that can be read, since each offer
// takes a connection.
func likelyFirst(signers []*access.Signer) {
	path := AuthorizedKeys()
	if len(signers) < 2 || path == "" {
		return
	}
	keys, err := access.NewSource(path, time.Now).Load()
	if err != nil {
		return
	}
	slices.SortStableFunc(signers, func(a, b *access.Signer) int { return rank(keys, a) - rank(keys, b) })
}

func rank(keys *access.AuthorizedKeys, s *access.Signer) int {
	if _, err := keys.Lookup(s.Key(), time.Now()); err != nil {
		return 1
	}
	return 0
}

// refused records that the kernel refused the offered key. It returns nil if another key is left, else the error of the
// login.
func (l *login) refused(why *fault.Fault) *fault.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = append(l.tried, Offer{Key: l.answer.Key, From: l.answer.From})
	if l.next+1 < min(len(l.found.Signers), maxOffers) {
		l.next++
		return nil
	}
	skipped := slices.Clone(l.found.Skipped)
	for _, s := range l.found.Signers[l.next+1:] {
		skipped = append(skipped, fmt.Sprintf("%s was not offered: %d keys are enough, name it with --identity", s.Key().Fingerprint(), maxOffers))
	}
	return loginFailed(l.route, l.tried, skipped, why)
}

// judge turns an error that no other connection can avoid, such as an untrusted kernel or a missing key, into a
// fault.AuthLogin.
func (l *login) judge(err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok && (f.ID == fault.PlaceUnsafe || f.ID.Domain() == "auth") {
		return loginFailed(l.route, l.tried, nil, err)
	}
	return err
}

// errSeen ends a prologue after its first frame.
var errSeen = errors.New("seen")

// KernelName returns the name of the kernel that o names in known_kernels.
func (o Options) KernelName() (string, error) { return o.route().name() }

// HostKey returns the running kernel's host key without logging in. The kernel has proved that it has the private part;
// the key is not compared with the known one. It is zero for a kernel in open mode. The error is a
// fault.DaemonUnreachable if no kernel runs.
func HostKey(ctx context.Context, o Options) (key access.PublicKey, err error) {
	at := o.route()
	ctx, cancel := context.WithTimeoutCause(ctx, o.patience(), noAnswer(o.patience()))
	defer cancel()
	conn, err := at.dial(ctx)
	if err != nil {
		if absent(err) {
			err = errNotRunning
		}
		return key, unreachable(at, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	err = access.ClientPrologue(ctx, conn, func(offer []byte, issued time.Time) (_ []byte, err error) {
		l := access.Login{Channel: conn.channel, Now: time.Now}
		if key, err = l.Host(offer, issued); err != nil {
			return nil, loginFailed(at, nil, nil, err)
		}
		return nil, errSeen
	})
	if errors.Is(err, errSeen) {
		err = nil
	}
	return key, err
}
