package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// maxOffers bounds how many keys are shown one after the other, each on a connection of its own.
const maxOffers = 6

// login proves to one kernel who we are, on any number of connections. Keys are looked for when the kernel first asks for
// one, and once: a passphrase is asked for once too.
type login struct {
	keys   Keys
	socket string // path
	// rest stops the clock of who waits for a connection while a key signs. Nil: there is none.
	rest func() (resume func())

	mu     sync.Mutex // held while keys are looked for
	found  *access.Candidates
	next   int     // of found.Signers: the one to show
	tried  []Offer // refused by the kernel
	answer *access.Answer
}

// Offer is a key that was shown to a kernel.
type Offer struct {
	Key  access.PublicKey
	From string // where its private part is: "ssh-agent" or a file's path
}

// String names the key as people tell keys apart.
func (o Offer) String() string {
	return fmt.Sprintf("%s (%s, from %s)", o.Key.Fingerprint(), o.Key.Type(), o.From)
}

// greet takes a connection through the prologue. It reports whether the kernel asked for a key: then whether it accepts
// that shows only later, as it says nothing where it does (PROTOCOL 4).
func (l *login) greet(ctx context.Context, conn *unixsock.Conn) (asked bool, err error) {
	err = access.ClientPrologue(ctx, conn, func(offer []byte, issued time.Time) ([]byte, error) {
		if l.rest != nil {
			defer l.rest()()
		}
		answer, err := l.answerTo(ctx, offer, issued)
		if err != nil {
			return nil, err
		}
		asked = !answer.Key.IsZero()
		return answer.Data, nil
	})
	return asked, err
}

func (l *login) answerTo(ctx context.Context, offer []byte, issued time.Time) (*access.Answer, error) {
	name, err := access.SocketName(l.socket)
	if err != nil {
		return nil, err
	}
	proof := access.Login{
		Socket: name, PID: os.Getpid(), UID: os.Geteuid(), Known: l.keys.known(), Pick: l.pick, Now: time.Now,
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

// pick returns the key to show.
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

// likelyFirst puts the keys in front that the kernel's usual authorized_keys names, where we may read that: each further
// one costs a connection. Whether they get in is the kernel's to say.
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

// refused notes that the kernel refused the key that was shown. It returns nil where there is another to show, else why
// nobody is let in.
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
	return loginFailed(l.socket, l.tried, skipped, why)
}

// judge tells where what kept us from answering is that we do not trust the kernel, or have no key.
func (l *login) judge(err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok && (f.ID == fault.PlaceUnsafe || f.ID.Domain() == "auth") {
		return loginFailed(l.socket, l.tried, nil, err)
	}
	return err
}
