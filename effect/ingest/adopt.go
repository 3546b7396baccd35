package ingest

import (
	"crypto/sha256"
	"encoding/hex"
)

// Identity is what a process becomes by adopting a resource: what the kernel journals and shows in Syscall.GetState. It is
// small; content and front matter lie in the context store under ContextID.
type Identity struct {
	ContextID string
	URI       string // base of the names that the process uses from now on
	Digest    string
	Name      string
	Proof     Proof
	Signer    string
}

// Adopt returns the identity that a process gets. It cannot fail: to switch it is the kernel's.
func (l *Loaded) Adopt() Identity {
	return Identity{ContextID: contextID(l.URI, l.Digest), URI: l.URI, Digest: l.Digest, Name: l.Name, Proof: l.Proof, Signer: l.Signer}
}

// contextID names a content by what it is and where it is from, so that a replay, and a second ingest of the same, give the
// same. Where it is from counts, since relative names in it do.
func contextID(uri, digest string) string {
	sum := sha256.Sum256([]byte(uri + "\n" + digest))
	return "ctx-" + hex.EncodeToString(sum[:16])
}
