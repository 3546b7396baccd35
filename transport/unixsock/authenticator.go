package unixsock

// Authenticator decides who gets through the prologue (PROTOCOL 4).
type Authenticator interface {
	// Offer begins one connection's exchange with peer. It is called from many goroutines.
	Offer(peer Peer) (Offer, error)
}

// Offer is one connection's exchange: what the daemon says first, and what it takes for an answer.
type Offer struct {
	// Data is the data of the daemon's first frame, one JSON object with a member `scheme`.
	Data []byte
	// Verify judges the data of the client's answer and returns the key that it proves, in the form of an
	// authorized_keys line. Its error is told to the client, so it is best a *schema.Error; the connection is closed
	// after it. Nil makes this open mode: any answer will do, one without data or metadata too, and a command in place
	// of the reply.
	Verify func(answer []byte) (key string, err error)
}

// OpenMode lets in everybody who answers (BRIDGE 4.2.5): the directory's permissions have decided before.
type OpenMode struct{}

// Offer implements Authenticator.
func (OpenMode) Offer(Peer) (Offer, error) { return Offer{Data: []byte(`{"scheme":"none"}`)}, nil }
