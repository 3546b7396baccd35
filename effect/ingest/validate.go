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
	"sync"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// Namespace is the SSH signature namespace of resources.
const Namespace = "pwos-promptware@v1"

// The proofs of a resource, strongest first. Local means that the resource is below root, None that the policy accepts it without
// proof.
const (
	ByIntegrity = "integrity"
	BySignature = "signature"
	ByPin       = "pin"
	Local       = "local"
	None        = "none"
)

// Valid is a validated resource. Only Validate returns one.
type Valid struct {
	fetched Fetched
	proof   string
	signer  string
}

// Validate checks the bytes against the integrity that the caller gave, or "", and against their signature file, and checks that the
// proof satisfies the policy. now is the time at which a key must be trusted. The error is IngestIntegrity, IngestSignature or
// IngestUnproven.
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

// signed checks the signature file of the resource, and sets v.signer if a trusted key has signed it. A signature of an untrusted key
// is ignored, and stranger has a text about the key for an error. A malformed signature, or one of a trusted key that does not match,
// is an error.
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
		// The error may have paths of the operator's files.
		return "; it is signed by " + sig.Key.Fingerprint() + ", and the kernel cannot read which keys it trusts: its log says why", nil
	}
	if err := sig.Verify(Namespace, v.fetched.Data, false); err != nil {
		return "", fault.IngestSignature.New("the signature next to the resource is not valid: the key %s has not signed these bits for %s", sig.Key.Fingerprint(), Namespace)
	}
	v.signer = sig.Key.Fingerprint()
	return "", nil
}

// pin matches a URL with a path segment that is a version tag with three numbers, alone or after a name and an @, or a commit.
var pin = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^https://[^/]+/([^?]*[/@])?(v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?|[0-9a-f]{40}|[0-9a-f]{64})/`)
})

// Pinned reports whether the path of a URL has a version tag or a commit before its last segment. A tag is a weaker proof than an
// integrity, because its owner can move it.
func Pinned(address string) bool { return pin().MatchString(address) }

// CheckIntegrity checks data against integrity metadata in the form of W3C Subresource Integrity: expressions sha256-BASE64,
// sha384-BASE64 or sha512-BASE64, separated by white space. Options after a question mark are ignored. Data is valid if it matches
// any expression of the strongest algorithm.
//
// Unlike a browser, it refuses an unknown algorithm, a value of the wrong length, and metadata without expressions, so that
// it never succeeds without a check. The error is IngestIntegrity.
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

// digest returns the digest of data by the named algorithm, nil if the algorithm is unknown.
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
