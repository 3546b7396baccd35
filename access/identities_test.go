package access_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestFind: which key is used, and from where.
func TestFind(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, "ecdsa256", "rsa3072").serve
	ed, ec, locked := keyFile(t, "ed25519"), keyFile(t, "ecdsa256"), keyFile(t, "locked")
	socket := agent(t)
	for _, c := range []struct {
		name string
		from access.Identities
		want string // name@source of each signer
	}{
		{"the agent's, then files", access.Identities{AgentSocket: socket, Files: []string{ec, "/nowhere", ed}}, "ecdsa256@ssh-agent rsa3072@ssh-agent ed25519@" + ed},
		{"files alone", access.Identities{Files: []string{ed, ec}}, "ed25519@" + ed + " ecdsa256@" + ec},
		{"a named file", access.Identities{AgentSocket: socket, Identity: ed, Files: []string{ec}}, "ed25519@" + ed},
		{"a named file whose key the agent has", access.Identities{AgentSocket: socket, Identity: ec}, "ecdsa256@ssh-agent"},
		{"a named public key that the agent has", access.Identities{AgentSocket: socket, Identity: ec + ".pub"}, "ecdsa256@ssh-agent"},
		{"a locked file", access.Identities{Identity: locked}, "locked@" + locked},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, s := range must(c.from.Find(t.Context()))(t).Signers {
				for _, name := range []string{"ed25519", "ecdsa256", "rsa3072", "locked"} {
					if s.Key() == vectorKey(t, name) {
						got = append(got, name+"@"+s.Source())
					}
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		name   string
		from   access.Identities
		reason fault.ID
	}{
		{"nothing at all", access.Identities{}, fault.AuthNoIdentity},
		{"no such file", access.Identities{AgentSocket: socket, Identity: "/nowhere/id"}, fault.AuthNoIdentity},
		{"a public key whose private key is missing", access.Identities{AgentSocket: socket, Identity: ed + ".pub"}, fault.AuthNoIdentity},
		{"a type that is not accepted", access.Identities{Identity: keyFile(t, "ecdsa521")}, fault.AuthKeyType},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := c.from.Find(t.Context())
			refused(t, err, c.reason)
		})
	}
}

// TestBadKeyFiles: each is refused at once, without its path or its content in the message.
func TestBadKeyFiles(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"open to others": func(path string) error { return os.Chmod(path, 0o644) },
		"a pipe":         func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
		"a directory":    func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"junk":           func(path string) error { return os.WriteFile(path, []byte("junk and secrets"), 0o600) },
		"empty":          func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"too long":       func(path string) error { return os.Truncate(path, 1<<20) },
		"half of it": func(path string) error {
			return errors.Join(os.Truncate(path, 200), os.Remove(path+".pub"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := keyFile(t, "ed25519")
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			_, err := (&access.Identities{Identity: path}).Find(t.Context())
			if e := refused(t, err, fault.AuthKeyFile); strings.Contains(e.Message, filepath.Dir(path)) || strings.Contains(e.Message, "secrets") {
				t.Errorf("%q reveals the path or the content", e.Message)
			}
			found, err := (&access.Identities{Files: []string{path, keyFile(t, "ecdsa256")}}).Find(t.Context())
			if err != nil || len(found.Signers) != 1 || len(found.Skipped) != 1 {
				t.Errorf("the bad file is not skipped as one of several: %+v, %v", found, err)
			}
		})
	}
}

// TestOldKeyFile: an encrypted file of the older form does not show its public key; the public key
// file beside it is used, and checked.
func TestOldKeyFile(t *testing.T) {
	t.Parallel()
	openSSH(t, "ssh-keygen")
	path := keyFile(t, "rsa3072")
	if out, err := exec.Command("ssh-keygen", "-q", "-p", "-m", "PEM", "-P", "", "-N", "open sesame", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i := &access.Identities{Identity: path, Passphrase: func(context.Context, string) ([]byte, error) { return []byte("open sesame"), nil }}
	signer := must(i.Find(t.Context()))(t).Signers[0]
	must(signer.Sign(t.Context(), access.Namespace, []byte("x")))(t)

	write(t, path+".pub", vector(t, "ed25519.pub"))
	signer = must(i.Find(t.Context()))(t).Signers[0]
	_, err := signer.Sign(t.Context(), access.Namespace, []byte("x"))
	refused(t, err, fault.AuthKeyFile)
	if err := os.Remove(path + ".pub"); err != nil {
		t.Fatal(err)
	}
	_, err = i.Find(t.Context())
	refused(t, err, fault.AuthKeyFile)
}

// TestDefaultKeyFiles: the files of ssh, the strongest type first.
func TestDefaultKeyFiles(t *testing.T) {
	t.Parallel()
	got := access.DefaultKeyFiles("/home/me")
	if len(got) != 4 || got[0] != "/home/me/.ssh/id_ed25519" || got[3] != "/home/me/.ssh/id_rsa" {
		t.Errorf("got %v", got)
	}
}

// TestPassphrase: it is requested once, when the key signs first, and again if it is wrong; the
// memory with it is cleared.
func TestPassphrase(t *testing.T) {
	t.Parallel()
	path := keyFile(t, "locked")
	var given [][]byte
	asked := func(answers ...string) *access.Signer {
		given = nil
		i := &access.Identities{Identity: path, Passphrase: func(_ context.Context, of string) ([]byte, error) {
			if of != path {
				t.Errorf("asked for %s", of)
			}
			if len(given) == len(answers) {
				return nil, errors.New("no more")
			}
			given = append(given, []byte(answers[len(given)]))
			return given[len(given)-1], nil
		}}
		s := must(i.Find(t.Context()))(t).Signers[0]
		if len(given) != 0 {
			t.Error("the passphrase was requested before the first signature")
		}
		return s
	}
	s := asked("wrong", "open sesame")
	for range 2 {
		must(s.Sign(t.Context(), access.Namespace, []byte("x")))(t)
	}
	if len(given) != 2 {
		t.Errorf("asked %d times", len(given))
	}
	for _, passphrase := range given {
		if strings.Trim(string(passphrase), "\x00") != "" {
			t.Error("a passphrase is left in memory")
		}
	}
	for name, s := range map[string]*access.Signer{
		"wrong each time": asked("a", "b", "c", "open sesame"),
		"not given":       asked(),
		"nobody to ask":   must((&access.Identities{Identity: path}).Find(t.Context()))(t).Signers[0],
	} {
		given = nil
		_, err := s.Sign(t.Context(), access.Namespace, []byte("x"))
		if e := refused(t, err, fault.AuthKeyFile); e.Detail("key") != s.Key().Fingerprint() {
			t.Errorf("%s: the error names the key %q", name, e.Detail("key"))
		}
	}
}
