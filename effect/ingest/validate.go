package ingest

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// Namespace is the namespace of signatures of resources.
const Namespace = "pwos-promptware@v1"

// The proofs: what vouches for a resource, the strongest if there are several. Local means that it
// is below root, None that the policy accepts it without proof.
const (
	ByIntegrity = "integrity"
	BySignature = "signature"
	ByPin       = "pin"
	Local       = "local"
	None        = "none"
)

// Valid is a resource that was validated. Only Validate makes one.
type Valid struct {
	fetched Fetched
	proof   string
	signer  string
}

// Validate checks the bits against the integrity that the caller gave, or "", and against the
// signature next to them, and whether that satisfies the policy. now is for keys that expire. The
// error is IngestIntegrity, IngestSignature or IngestUnproven.
func (p *Pipeline) Validate(f *Fetched, integrity string, now time.Time) (*Valid, error) {
	v := &Valid{fetched: *f}
	err := p.checkDocument(v, integrity, now)
	if err != nil {
		return nil, fault.Prefix(err, "validate: %s", f.URI)
	}
	return v, nil
}

func (p *Pipeline) checkDocument(v *Valid, integrity string, now time.Time) error {
	f := &v.fetched
	if integrity != "" {
		if err := CheckIntegrity(integrity, f.Data); err != nil {
			return err
		}
	}
	stranger, err := p.signed(v, now)
	if err != nil {
		return err
	}
	switch {
	case integrity != "":
		v.proof = ByIntegrity
	case v.signer != "":
		v.proof = BySignature
	case p.Policy.Proof:
		return fault.IngestUnproven.New("nothing proves the resource: give its integrity, or sign it with a trusted key%s", stranger)
	case !f.Remote:
		v.proof = Local
	case Pinned(f.URI):
		v.proof = ByPin
	case p.Policy.Unpinned:
		v.proof = None
	default:
		return fault.IngestUnproven.New("nothing proves the resource: give its integrity, %s, or name a version tag or commit in its address%s", f.Digest, stranger)
	}
	return nil
}

// signed checks the signature next to the resource. One by an untrusted key proves nothing and does
// no harm: its key is returned in stranger, for the message. A malformed one, or a trusted key's
// that does not match these bits, is an error.
func (p *Pipeline) signed(v *Valid, now time.Time) (stranger string, err error) {
	if v.fetched.Signature == nil {
		return "", nil
	}
	sig, err := access.ParseArmored(string(v.fetched.Signature))
	if err != nil {
		return "", fault.IngestSignature.New("the signature next to the resource is not valid: make it with \"ssh-keygen -Y sign -n %s\"", Namespace)
	}
	if p.Policy.Trusted == nil {
		return "; it is signed by " + sig.Key.Fingerprint() + ", which is not trusted", nil
	}
	if err := p.Policy.Trusted(sig.Key, now); err != nil {
		if errors.Is(err, fault.Unauthenticated) || errors.Is(err, fs.ErrNotExist) {
			return "; it is signed by " + sig.Key.Fingerprint() + ", which is not trusted", nil
		}
		// The error names files of the operator's.
		return "; it is signed by " + sig.Key.Fingerprint() + ", and the kernel cannot read which keys it trusts: its log says why", nil
	}
	if err := sig.Verify(Namespace, v.fetched.Data, false); err != nil {
		return "", fault.IngestSignature.New("the signature next to the resource is not valid: the key %s has not signed these bits for %s", sig.Key.Fingerprint(), Namespace)
	}
	v.signer = sig.Key.Fingerprint()
	return "", nil
}

// pin finds a version tag with three numbers, alone or after a name and an @, or a commit, as one
// segment of a path.
var pin = regexp.MustCompile(`^https://[^/]+/([^?]*[/@])?(v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?|[0-9a-f]{40}|[0-9a-f]{64})/`)

// Pinned reports whether the path of an address has a version tag or a commit above its last segment. A tag can be moved by
// whom it belongs to: an integrity says more.
func Pinned(address string) bool { return pin.MatchString(address) }

// CheckIntegrity checks data against integrity metadata as subresource integrity writes it: expressions such as sha256-… and
// base64, separated by white space, each perhaps with options behind a question mark, which mean nothing. Of several
// algorithms only the strongest counts, and of several values of that one any will do.
//
// Unlike a browser it refuses what is not understood: an unknown algorithm, a value of the wrong length, no expression at all.
// Integrity that is asked for never passes because nothing was checked. The error is IngestIntegrity.
func CheckIntegrity(integrity string, data []byte) error {
	expressions := strings.Fields(integrity)
	if len(expressions) == 0 {
		return fault.IngestIntegrity.New("integrity does not hold: it names no digest")
	}
	strongest, holds := 0, false
	for _, e := range expressions {
		e, _, _ = strings.Cut(e, "?")
		name, value, _ := strings.Cut(e, "-")
		sum := digest(name, data)
		if sum == nil {
			return fault.IngestIntegrity.New("integrity does not hold: it takes sha256-, sha384- and sha512-")
		}
		want, err := base64.StdEncoding.Strict().DecodeString(value)
		if err != nil || len(want) != len(sum) {
			return fault.IngestIntegrity.New("integrity does not hold: behind %s- there must be %d bytes in base64", name, len(sum))
		}
		if len(sum) > strongest {
			strongest, holds = len(sum), false
		}
		if len(sum) == strongest && subtle.ConstantTimeCompare(sum, want) == 1 {
			holds = true
		}
	}
	if !holds {
		return fault.IngestIntegrity.New("integrity does not hold: the resource has another digest")
	}
	return nil
}

// digest returns the digest of data by the named algorithm, nil for one that does not count.
func digest(name string, data []byte) []byte {
	switch name {
	case "sha256":
		sum := sha256.Sum256(data)
		return sum[:]
	case "sha384":
		sum := sha512.Sum384(data)
		return sum[:]
	case "sha512":
		sum := sha512.Sum512(data)
		return sum[:]
	}
	return nil
}
