package testkit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Place is the home directory of a kernel under test: its runtime directory is r, its state directory s. Processes of the
// kernel use it one after the other. It is removed after the test.
type Place struct{ Dir string }

// NewPlace creates a place whose config.toml is settings. Empty settings write no file.
func NewPlace(t testing.TB, settings string) *Place {
	t.Helper()
	p := &Place{Dir(t)}
	if settings != "" {
		WriteFile(t, p.Path("config.toml"), settings)
	}
	return p
}

// Path returns the path of a file of the place.
func (p *Place) Path(name string) string { return filepath.Join(p.Dir, name) }

// RuntimeDir, StateDir and Socket return the paths of the kernel's directories, and of its socket.
func (p *Place) RuntimeDir() string { return p.Path("r") }
func (p *Place) StateDir() string   { return p.Path("s") }
func (p *Place) Socket() string     { return p.Path("r/kernel.sock") }

// Journal returns everything that the kernel has written to its journal, as text.
func (p *Place) Journal(t testing.TB) string {
	t.Helper()
	return Journal(t, p.StateDir())
}

// Journal returns the text of all segments of a state directory's journal, in order.
func Journal(t testing.TB, stateDir string) string {
	t.Helper()
	var all strings.Builder
	for _, file := range Value(filepath.Glob(filepath.Join(stateDir, "journal", "*.ndjson")))(t) {
		all.WriteString(ReadFile(t, file))
	}
	return all.String()
}

// Key writes a new private key, as ssh-keygen does, and returns its path.
func (p *Place) Key(t testing.TB) string {
	t.Helper()
	NewKey(t, p.Path("key"))
	return p.Path("key")
}

// NewKey writes a new private key to a file, as ssh-keygen does, and returns its public key.
func NewKey(t testing.TB, file string) ssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	Must(t, err)
	block := Value(ssh.MarshalPrivateKey(private, ""))(t)
	Must(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	return Value(ssh.NewPublicKey(public))(t)
}

// Start runs a daemon here and waits until clients may connect. The test's end stops it cleanly, unless it has ended
// before, and shows its output if the test has failed.
func (p *Place) Start(t testing.TB, d Daemon) *Process {
	t.Helper()
	d.Dir = p.Dir
	running := d.Start(t)
	t.Cleanup(func() {
		if running.Stop(t); t.Failed() {
			t.Logf("the daemon's output:\n%.20000s", running.Output())
		}
	})
	return running
}
