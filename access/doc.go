// Package access authenticates the peer of a connection (BRIDGE 4.2.5, 4.3.1).
//
// It knows no transport. A daemon's transport hands its connections to a Door, with the Peer that it vouches for; the Door lets so
// many in at once, sends the Authenticator's offer, and returns the Identity that the answer proves. A client answers by
// ClientPrologue. What either needs of a connection is Lines.
//
// A login with keys goes so. The daemon makes a Challenge for a connection, whose data is the prologue's: the challenge, its host
// key, and a proof that it holds that key. The client (Login) builds a Binding of its own from the challenge and from
// what it knows itself of the connection, refuses a proof that does not fit it, and signs the binding's text. The daemon
// verifies that signature against the Binding that it built, with a key of its AuthorizedKeys. Neither signs bytes that
// the other one made.
//
// What is signed is signed in the SSHSIG form, under a namespace of ours: it is no signature of a file, of a git commit or of an
// SSH login, and none of those is one of ours. The one exception is Sealer, which derives a key from the raw signature
// of a fixed text.
//
// Nothing here opens a socket but that of an ssh-agent, starts a goroutine that outlives a call, or logs. For keys, time comes
// in. What a fault says may be shown to whoever caused it.
package access
