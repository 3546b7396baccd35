package access_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time of every test that needs one.
var noon = time.UnixMilli(1_735_000_000_000)

func at(now time.Time) func() time.Time { return func() time.Time { return now } }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refused fails unless err is a fault of the reason, with a message fit for a person: not empty,
// one line, and short.
func refused(t testing.TB, err error, reason fault.ID) *fault.Fault {
	t.Helper()
	e, ok := errors.AsType[*fault.Fault](err)
	if !ok || e.ID != reason {
		t.Fatalf("got %v (%+v), want it refused as %q", err, e, reason)
	}
	if e.Message == "" || len(e.Message) > 1500 || strings.ContainsAny(e.Message, "\n\x00") {
		t.Fatalf("%q is no message for a person", e.Message)
	}
	return e
}

// newKey makes a key of a kind: ed25519, p256, p384, p521, or rsa with its bits.
func newKey(t testing.TB, kind string) ssh.Signer {
	t.Helper()
	var private crypto.Signer
	var err error
	switch kind {
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "p256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "p384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "p521":
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "rsa3072":
		private, err = rsa.GenerateKey(rand.Reader, 3072)
	default:
		t.Fatalf("no kind of key: %s", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return must(ssh.NewSignerFromSigner(private))(t)
}

// newSigner returns newKey as a Signer.
func newSigner(t testing.TB, kind string) *access.Signer {
	t.Helper()
	return must(access.NewSigner(newKey(t, kind), "test"))(t)
}

// privateDir returns a new directory that only the user may write, whatever the umask.
func privateDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// vector returns a file of testdata/vectors.
func vector(t testing.TB, name string) string {
	t.Helper()
	return string(must(os.ReadFile(filepath.Join("testdata", "vectors", name)))(t))
}

// keyFile copies a key pair of the vectors to a private directory.
func keyFile(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(privateDir(t), name)
	for _, suffix := range []string{"", ".pub"} {
		if err := os.WriteFile(path+suffix, []byte(vector(t, name+suffix)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// vectorKey is a public key of the vectors.
func vectorKey(t testing.TB, name string) access.PublicKey {
	t.Helper()
	key, _, err := access.ParsePublicKey(vector(t, name+".pub"))
	return must(key, err)(t)
}

// world is a daemon and a client that trust each other, at one socket.
type world struct {
	host     *access.Signer
	verifier *access.Verifier
	login    *access.Login
	keys     string // the text of authorized_keys
}

const (
	socket   = "/run/user/1000/pwos/kernel.sock"
	pid, uid = 4321, 1000
)

// newWorld authorizes the key file of a vector.
func newWorld(t testing.TB, name string) *world {
	t.Helper()
	w := &world{host: newSigner(t, "ed25519"), keys: vector(t, name+".pub")}
	w.verifier = &access.Verifier{Host: w.host, Now: at(noon), Keys: func() (*access.AuthorizedKeys, error) {
		return access.ParseAuthorizedKeys([]byte(w.keys), time.UTC), nil
	}}
	w.login = &access.Login{
		Channel: access.Local{Socket: socket, PID: pid, UID: uid}, Now: at(noon),
		Known:      access.KnownKernels{Path: filepath.Join(privateDir(t), "known_kernels")},
		Identities: &access.Identities{Identity: keyFile(t, name)},
	}
	return w
}

// challenge begins a login at the world's socket, of the world's process.
func (w *world) challenge(t testing.TB) *access.Challenge {
	t.Helper()
	return must(w.verifier.Challenge(context.Background(), access.Local{Socket: socket, PID: pid, UID: uid}))(t)
}

// answer returns the answer of the world's client to c.
func (w *world) answer(t testing.TB, c *access.Challenge) *access.Answer {
	t.Helper()
	return must(w.login.Answer(t.Context(), c.Data(), c.Issued()))(t)
}
