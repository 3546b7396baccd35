// Package ingest turns the name of a resource into an identity that a process can adopt (ABI 8).
//
// There are four phases, in this order, each with what the one before returned:
//
//	Fetch      name → bits, and the signature beside them    the only input and output
//	Validate   bits → bits that somebody answers for         integrity, signature, pin
//	Load       bits → front matter, content, skills, tools   text only
//	Adopt      Loaded.Identity, which the kernel stores      nothing can fail any more
//
// None of them stores anything, so a phase that fails leaves nothing to undo. The types make the order: what Load takes only
// Validate returns. Run does the first three; a process adopts what it returns.
//
// # What answers for a resource
//
// Below root nothing has to: a user who can write there decides what the kernel runs, unless Policy.Proof asks for more. What
// comes from the web has to be pinned (BRIDGE 8): by the integrity that the caller gives, by a signature beside it of a key
// that Policy.Trusted knows, or by a version tag or commit in its address. Whatever the policy, an integrity that does not
// hold is refused, and so is a signature that does not.
//
// A signature is what this writes, beside the resource with .sig appended:
//
//	ssh-keygen -Y sign -n pwos-promptware@v1 -f KEY FILE
//
// It is one of the bits, not of the name: a signed resource can be put elsewhere. Pin it by integrity where that matters.
package ingest
