package access

import (
	"encoding/base64"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema/fault"
)

// Channel is a connection as both ends know it, which a login is bound to: a Local or a TLS.
type Channel interface {
	// kernel returns the name of the kernel in known_kernels.
	kernel() string
	// lines returns the lines of the binding's text that stand for the connection, or what is missing.
	lines() ([]string, error)
	// relayed describes why a proof does not match, in the words of the client's user.
	relayed() string
}

// Local is a connection to a Unix socket. Its members are known from:
//
//	member     to the daemon                           to the client
//	Socket     SocketName of the path it listens at    SocketName of the path it connected to
//	PID, UID   SO_PEERCRED of the connection           its own process: os.Getpid, os.Geteuid
//
// The PID is that of the process that called connect(2), and must be the same in its PID namespace
// and in the daemon's. For a shell script it is the helper that holds the socket.
type Local struct {
	Socket   string
	PID, UID int
}

func (l Local) kernel() string { return l.Socket }

func (l Local) lines() ([]string, error) {
	switch {
	case l.PID <= 0:
		return nil, fault.AuthMalformed.New("the system does not say which process connects: run it in the PID namespace of the daemon")
	case l.UID < 0:
		return nil, fault.AuthMalformed.New("the system does not say which user connects")
	}
	pid, uid := strconv.Itoa(l.PID), strconv.Itoa(l.UID)
	return []string{"pid: " + pid, "socket: " + l.Socket, "uid: " + uid}, checkSocketName(l.Socket)
}

func (l Local) relayed() string {
	return fmt.Sprintf("something relays it, or client and daemon see another socket path or PID (%s, process %d)", l.Socket, l.PID)
}

// ExporterLabel and ExporterSize say how both ends take the Exporter of a TLS session (RFC 9266).
const (
	ExporterLabel = "EXPORTER-Channel-Binding"
	ExporterSize  = 32
)

// TLS is a TLS session. One that relays a login has a session with each end, and
// these have different exporters.
type TLS struct {
	Name     string // TLSName of the address that the client dialled; the daemon does not know it
	Exporter [ExporterSize]byte
	Shown    PublicKey // key of the daemon's certificate, as the client saw it
}

func (t TLS) kernel() string { return t.Name }

func (t TLS) lines() ([]string, error) {
	if t.Exporter == [ExporterSize]byte{} {
		return nil, fault.AuthMalformed.New("the TLS session has no exporter")
	}
	return []string{"exporter: " + base64.StdEncoding.EncodeToString(t.Exporter[:])}, nil
}

func (t TLS) relayed() string { return "something between here and " + t.Name + " relays it" }

// tlsScheme begins the name of a kernel that is reached over TLS.
const tlsScheme = "tls://"

// TLSName returns the one form of a kernel's name tls://HOST:PORT, and the address to dial.
func TLSName(text string) (name, address string, err error) {
	rest, ok := strings.CutPrefix(text, tlsScheme)
	host, port, splitErr := net.SplitHostPort(rest)
	number, portErr := strconv.ParseUint(port, 10, 16)
	odd := func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`/\?#@"'<>`, r)
	}
	if !ok || splitErr != nil || portErr != nil || number == 0 || host == "" || len(host) > 253 || strings.ContainsFunc(host, odd) {
		return "", "", fault.AuthMalformed.New("%q is not the address of a kernel: write it as tls://HOST:PORT", printable(text, 300))
	}
	address = net.JoinHostPort(strings.ToLower(host), strconv.FormatUint(number, 10))
	return tlsScheme + address, address, nil
}

// checkKernelName refuses a name that known_kernels cannot have.
func checkKernelName(name string) error {
	if !strings.HasPrefix(name, tlsScheme) {
		return checkSocketName(name)
	}
	switch canonical, _, err := TLSName(name); {
	case err != nil:
		return err
	case canonical != name:
		return fault.AuthMalformed.New("the kernel's name is not %s", canonical)
	}
	return nil
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
