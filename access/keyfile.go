package access

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// maxKeyFile bounds a key file in bytes: an RSA key of 16,384 bits needs 13,000.
	maxKeyFile = 64 << 10
	// passphraseTries is how often the user is asked for a passphrase.
	passphraseTries = 3
)

// Passphrase asks the user for the passphrase of the private key at path. What it returns is
// cleared after use.
type Passphrase func(ctx context.Context, path string) ([]byte, error)

// readKeyFile reads the key at path: its public part, and a signer if the file holds the private
// part too. The passphrase is requested when the signer signs first.
func readKeyFile(path string, ask Passphrase) (PublicKey, *Signer, error) {
	text, err := readPrivate(path)
	if err != nil {
		return PublicKey{}, nil, err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN")) {
		key, _, failure := parseKeyLine(string(text))
		if failure != nil {
			return PublicKey{}, nil, badKeyFile(path, "holds no key of type "+AcceptedTypes).Wrap(failure)
		}
		return key, nil, nil
	}
	private, err := ssh.ParsePrivateKey(text)
	if err == nil {
		clear(text)
		s, err := NewSigner(private, path)
		if err != nil {
			return PublicKey{}, nil, err
		}
		return s.key, s, nil
	}
	locked, encrypted := errors.AsType[*ssh.PassphraseMissingError](err)
	var key PublicKey
	if encrypted && locked.PublicKey != nil {
		var failure *fault.Fault
		if key, failure = parseKeyBlob(locked.PublicKey.Marshal()); failure != nil {
			return PublicKey{}, nil, failure
		}
	} else if key, err = besides(path); err != nil {
		return PublicKey{}, nil, err
	}
	if !encrypted {
		// The file of a security key holds a handle that only its own program can use.
		return key, nil, nil
	}
	return key, &Signer{key: key, source: path, sign: unlockOnce(path, text, key, ask)}, nil
}

// badKeyFile is the error of an unusable key file. It has the file's name but not its directory,
// since a daemon shows it.
func badKeyFile(path, problem string) *fault.Fault {
	return fault.AuthKeyFile.New("the key file %s %s: name another with --identity, or add it to ssh-agent", printable(filepath.Base(path), 256), problem)
}

// besides reads the public key file next to a private key that does not contain its public key.
func besides(path string) (PublicKey, error) {
	text, err := readPrivate(path + ".pub")
	if err == nil {
		if key, _, failure := parseKeyLine(string(text)); failure == nil {
			return key, nil
		}
	}
	// err is not wrapped: a missing public key file does not mean that the key file is missing.
	return PublicKey{}, badKeyFile(path, "cannot be read as a private key")
}

// readPrivate reads a regular file, which must be closed to others unless it holds a public key.
func readPrivate(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.AuthNoIdentity.New("there is no key file %s: make one with \"ssh-keygen -t ed25519\", or name another with --identity",
			printable(filepath.Base(path), 256)).Wrap(err)
	}
	if err != nil {
		return nil, badKeyFile(path, "cannot be opened").Wrap(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, badKeyFile(path, "is no regular file").Wrap(err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	switch {
	case err != nil:
		return nil, badKeyFile(path, "cannot be read").Wrap(err)
	case len(text) > maxKeyFile:
		return nil, badKeyFile(path, fmt.Sprintf("is over %d bytes long", maxKeyFile))
	case info.Mode().Perm()&0o077 != 0 && bytes.Contains(text, []byte("PRIVATE KEY-----")):
		return nil, badKeyFile(path, fmt.Sprintf("is open to others (mode %04o), so chmod it to 0600", info.Mode().Perm()))
	}
	return text, nil
}

// unlockOnce returns the signing function of an encrypted key: the first signature asks for the
// passphrase, and others wait for that.
func unlockOnce(path string, text []byte, key PublicKey, ask Passphrase) func(context.Context, []byte, string) (*ssh.Signature, error) {
	var mu sync.Mutex
	var unlocked ssh.Signer
	return func(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error) {
		mu.Lock()
		defer mu.Unlock()
		if unlocked == nil {
			private, err := unlock(ctx, path, text, ask)
			if err != nil {
				return nil, attributed(err, key)
			}
			if string(private.PublicKey().Marshal()) != key.blob {
				return nil, badKeyFile(path, "holds a private key that does not match its public key").With("key", key.Fingerprint())
			}
			unlocked = private
		}
		return signWith(unlocked)(ctx, data, algorithm)
	}
}

// unlock asks for the passphrase until it fits, at most passphraseTries times.
func unlock(ctx context.Context, path string, text []byte, ask Passphrase) (ssh.Signer, error) {
	if ask == nil {
		return nil, badKeyFile(path, "has a passphrase, and there is no terminal to ask for it at")
	}
	for range passphraseTries {
		passphrase, err := ask(ctx, path)
		if err != nil {
			return nil, badKeyFile(path, "has a passphrase, which was not given").Wrap(err)
		}
		private, err := ssh.ParsePrivateKeyWithPassphrase(text, passphrase)
		clear(passphrase)
		if err == nil {
			return private, nil
		}
		if !errors.Is(err, x509.IncorrectPasswordError) {
			return nil, badKeyFile(path, "cannot be decrypted").Wrap(err)
		}
	}
	return nil, badKeyFile(path, "has another passphrase than the one given")
}

// DefaultKeyFiles are the private keys that ssh looks for in a home directory, ed25519 first.
func DefaultKeyFiles(home string) []string {
	var files []string
	for name := range strings.FieldsSeq("id_ed25519 id_ed25519_sk id_ecdsa id_rsa") {
		files = append(files, filepath.Join(home, ".ssh", name))
	}
	return files
}
