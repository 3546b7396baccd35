package access

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
// connection is invalid for any other time, process, user, socket or kernel.
//
//	member     the daemon knows it from                the client knows it from
//	Challenge  its own random source                   the prologue
//	HostKey    its state directory                     the prologue; must be the one in known_kernels
//	Socket     SocketName of the path it listens at    SocketName of the path it connected to
//	PID, UID   SO_PEERCRED of the connection           its own process: os.Getpid, os.Geteuid
//	Issued     its clock, when it made the prologue    the prologue frame's metadata.timestamp
//
// The time is that of the prologue frame's metadata (PROTOCOL 4 leaves no room for another in
// either frame's data), so a client does not send it back: the daemon binds the time that it
// stamped. The client accepts only a time within Window of its own clock, so a recorded prologue is
// useless later.
//
// The PID is that of the process that called connect(2), and must be the same in its PID namespace
// and in the daemon's. For a shell script it is the helper that holds the socket.
type Binding struct {
	Challenge [ChallengeSize]byte
	HostKey   PublicKey
	Socket    string
	PID       int
	UID       int
	Issued    time.Time // to the millisecond
}

// Text returns what the given end signs: a first line that names the form, then a line "name:
// value" for each member, in ascending order, each ended by "\n". No value contains a line end, so
// no two bindings have the same text.
//
//	pwos-auth: v1
//	challenge: (base64, 44 characters)
//	host_key: (type and base64)
//	pid: (decimal)
//	role: client
//	socket: (absolute path)
//	time: (milliseconds since 1970, decimal)
//	uid: (decimal)
func (b *Binding) Text(role Role) ([]byte, error) {
	if err := b.check(role); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "pwos-auth: v1\nchallenge: %s\nhost_key: %s\npid: %d\nrole: %s\nsocket: %s\ntime: %d\nuid: %d\n",
		base64.StdEncoding.EncodeToString(b.Challenge[:]), b.HostKey, b.PID, role, b.Socket, b.Issued.UnixMilli(), b.UID), nil
}

// check refuses an incomplete binding.
func (b *Binding) check(role Role) error {
	switch {
	case b.HostKey.IsZero() || b.Challenge == [ChallengeSize]byte{} || role != Client && role != Host:
		return fault.AuthMalformed.New("the login is bound to no kernel")
	case b.PID <= 0:
		return fault.AuthMalformed.New("the system does not say which process connects: run it in the PID namespace of the daemon")
	case b.UID < 0:
		return fault.AuthMalformed.New("the system does not say which user connects")
	case b.Issued.UnixMilli() <= 0:
		return fault.AuthMalformed.New("the prologue has no time")
	}
	return checkSocketName(b.Socket)
}

// checkSocketName refuses a name that could be read as two paths, or as two lines.
func checkSocketName(path string) error {
	odd := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	if len(path) > maxSocketPath || !utf8.ValidString(path) || strings.ContainsFunc(path, odd) {
		return fault.AuthMalformed.New("the socket's path is too long or has control characters: set PWOS_RUNTIME_DIR to another directory")
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fault.AuthMalformed.New("the socket's path is not absolute: begin it with a slash")
	}
	return nil
}

// SocketName returns the name that both ends use for a socket: its absolute path, without symbolic
// links in its directory, which must exist. The socket itself may not be a link (PROTOCOL 1).
func SocketName(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("name socket: %w", err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("name socket: %w", err)
	}
	path = filepath.Join(dir, filepath.Base(path))
	return path, checkSocketName(path)
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
