// Package ingest loads a resource by its name into an identity that a process can adopt (ABI 8).
//
// There are four phases, in this order. Each takes the result of the previous one:
//
//	Fetch      name → bytes and their signature file           the only phase with I/O
//	Validate   bytes → bytes with a proof                      integrity, signature, pin
//	Load       bytes → front matter, content, skills, tools    text only
//	Adopt      the kernel stores Loaded.Identity               cannot fail
//
// The first three phases store nothing, so a phase that fails leaves nothing to undo. The types enforce the order: only Validate
// returns the input of Load. Run runs the first three phases; the process adopts their result.
//
// # The proof of a resource
//
// A resource below root needs no proof unless Policy.Proof is set, because a user who can write there controls what the kernel
// runs. A resource of the web needs one (BRIDGE 8): the integrity that the caller gives, a signature file next to it by a key
// that Policy.Trusted accepts, or a version tag or commit in its URL. An integrity that does not match is always refused, and so
// is an invalid signature of a trusted key.
//
// The signature file is the name of the resource with .sig appended. This command writes it:
//
//	ssh-keygen -Y sign -n pwos-promptware@v1 -f KEY FILE
//
// It signs the bytes and not the name: a signed resource is valid under any name. Use an integrity if that matters.
package ingest
