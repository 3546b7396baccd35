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

// Role is which end of a connection signs.
type Role string

// The two ends.
const (
	Client Role = "client"
	Host   Role = "host"
)

// Binding is what a login is bound to. Each end makes its own, so that a signature made for one connection is none for
// another: of another time, process, user, socket, kernel.
//
//	member     the daemon knows it from                the client knows it from
//	Challenge  its own random source                   the prologue
//	HostKey    its state directory                     the prologue; it has to be the one in known_kernels
//	Socket     SocketName of the path it listens at    SocketName of the path it connected to
//	PID, UID   SO_PEERCRED of the connection           its own process: os.Getpid, os.Geteuid
//	Issued     its clock, when it made the prologue    the prologue frame's metadata.timestamp
//
// The time is the one that the prologue's metadata carries already (PROTOCOL 4 leaves no room for another in either
// frame's data): a client with nothing but a shell reads it there, and does not have to tell the daemon which time it
// signed. The daemon does not trust that it comes back: it binds the time that it stamped the frame with. The client
// takes only what lies within Window of its own clock, so that a recorded prologue is of no use later.
//
// The PID is that of the process whose connect(2) made the connection, as its own PID namespace and the daemon's both call it.
// For a shell that is the helper that holds the socket, not the shell.
type Binding struct {
	Challenge [ChallengeSize]byte
	HostKey   PublicKey
	Socket    string
	PID       int
	UID       int
	Issued    time.Time // to the millisecond
}

// Text returns what the given end signs: a first line that names the form, then one line a member, "name: value", the names
// in ascending order, each line ended by "\n". No value holds a line end, so that no two bindings have the same text.
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

// check refuses a binding that leaves something open.
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
		return fault.AuthMalformed.New("the socket's path is not absolute: name it from the root on")
	}
	return nil
}

// SocketName returns the name by which both ends of a socket call it: its path, absolute and without symbolic links in
// its directory, which has to be there. The socket itself may not be a link (PROTOCOL 1), so its name stays.
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

// Window is how far the time of a prologue may be from the clock of the client that answers it, or
// of the daemon that reads the answer. It only bounds how long a recorded prologue is useful:
// PROTOCOL 4 closes the connection after 10 s.
const Window = 30 * time.Second

// checkTime refuses what was issued too long before now, or after it.
func checkTime(issued, now time.Time) error {
	if age := now.Sub(issued); age > Window || age < -Window {
		return fault.AuthLate.New("the prologue is from another time (%s): connect again, and look at the clock if that does not help",
			issued.UTC().Format(time.RFC3339))
	}
	return nil
}
