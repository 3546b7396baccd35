// Package access authenticates the peer of a connection (BRIDGE 4.2.5, 4.3.1).
//
// It knows no transport. A daemon's transport passes each connection to a Door, with the Peer that
// the system reports. The Door bounds how many are in their prologue, sends the Authenticator's
// offer, and returns the Identity that the answer proves. A client answers with ClientPrologue.
// Both need only Lines of a connection.
//
// A login with keys has three steps. The daemon makes a Challenge for a connection; its data is the
// prologue's: the challenge, the host key, and a proof that the daemon holds that key. The client
// (Login) builds its own Binding from the challenge and from what it knows of the connection,
// refuses a proof that does not match it, and signs the binding's text. The daemon verifies that
// signature against the Binding that it built, with a key of its AuthorizedKeys. Neither end signs
// bytes that the other one made.
//
// Signatures are in the SSHSIG form, under namespaces of pwos: none is valid for a file, a git
// commit or an SSH login, and none of those is valid here. The one exception is Sealer, which
// derives a key from the raw signature of a fixed text.
//
// The package opens no socket except that of an ssh-agent, starts no goroutine that outlives a
// call, and logs nothing. Code that handles keys takes the time as an argument. The message of a
// fault may be shown to the peer that caused it.
package access
