package access

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// Namespace is the namespace of a client's signature.
	Namespace = "pwos-auth@v1"
	// HostNamespace is the namespace of a daemon's proof. It differs from Namespace, and the texts
	// differ in their role, so that neither side's signature can be replayed as the other's.
	HostNamespace = "pwos-host@v1"

	// ChallengeSize is how many random bytes a challenge has.
	ChallengeSize = 32

	// maxSocketPath bounds a socket path in bytes; the system's own limit is about 100.
	maxSocketPath = 1024
)

// Role names the end of a connection that signs.
type Role string

// The two ends.
const (
	Client Role = "client"
	Host   Role = "host"
)

// Binding is what a login is bound to. Each end builds its own, so a signature made for one
// connection is invalid for any other connection, time or kernel.
//
//	member     the daemon knows it from                the client knows it from
//	Challenge  its own random source                   the prologue
//	HostKey    its state directory                     the prologue; must be the one in known_kernels
//	Channel    the connection                          the connection
//	Issued     its clock, when it made the prologue    the prologue frame's metadata.timestamp
//
// The time is that of the prologue frame's metadata (PROTOCOL 4 leaves no room for another in
// either frame's data), so a client does not send it back: the daemon binds the time that it
// stamped. The client accepts only a time within Window of its own clock, so a recorded prologue is
// useless later.
type Binding struct {
	Challenge [ChallengeSize]byte
	HostKey   PublicKey
	Channel   Channel
	Issued    time.Time // to the millisecond
}

// Text returns what the given end signs: a first line that names the form, then a line "name:
// value" for each member, in ascending order, each ended by "\n". No value contains a line end, so
// no two bindings have the same text. A Local's is:
//
//	pwos-auth: v1
//	challenge: (base64, 44 characters)
//	host_key: (type and base64)
//	pid: (decimal)
//	role: client
//	socket: (absolute path)
//	time: (milliseconds since 1970, decimal)
//	uid: (decimal)
//
// A TLS has, in place of pid, socket and uid:
//
//	exporter: (base64, 44 characters)
func (b *Binding) Text(role Role) ([]byte, error) {
	switch {
	case b.HostKey.IsZero() || b.Channel == nil || b.Challenge == [ChallengeSize]byte{} || role != Client && role != Host:
		return nil, fault.AuthMalformed.New("the login is bound to no kernel")
	case b.Issued.UnixMilli() <= 0:
		return nil, fault.AuthMalformed.New("the prologue has no time")
	}
	lines, err := b.Channel.lines()
	if err != nil {
		return nil, err
	}
	lines = append(lines,
		"challenge: "+base64.StdEncoding.EncodeToString(b.Challenge[:]), "host_key: "+b.HostKey.String(),
		"role: "+string(role), fmt.Sprintf("time: %d", b.Issued.UnixMilli()))
	slices.Sort(lines)
	return []byte("pwos-auth: v1\n" + strings.Join(lines, "\n") + "\n"), nil
}

// Window bounds the difference between the time of a prologue and the clock of either end. It
// limits how long a recorded prologue is useful: PROTOCOL 4 closes the connection after 10 s.
const Window = 30 * time.Second

// checkTime refuses a time that is not within Window of now.
func checkTime(issued, now time.Time) error {
	if age := now.Sub(issued); age > Window || age < -Window {
		return fault.AuthLate.New("the prologue is from another time (%s): connect again, and check the clock if that does not help",
			issued.UTC().Format(time.RFC3339))
	}
	return nil
}
