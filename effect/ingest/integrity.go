package ingest

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"strings"

	"github.com/promptware-os/pwos/schema/fault"
)

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
