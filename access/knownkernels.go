package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/internal/regular"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/schema/fault"
)

// KnownKernels is the file in which clients remember which kernel answers at a socket or an address,
// a line for each: the key's type and base64, then its name (SocketName, TLSName) up to the end of
// the line. Clients trust
// it, so a malformed line is refused, and so is a file or directory that another user may write.
// Without a Path no kernel is known, and none can be remembered.
type KnownKernels struct{ Path string }

// KnownKernel is one of its lines.
type KnownKernel struct {
	Socket string
	Key    PublicKey
}

// lockTime bounds the wait for another client that writes the file.
const lockTime = 5 * time.Second

// List returns the lines of the file, none if it does not exist. The error is a fault.PlaceUnsafe
// or one of the file system.
func (k KnownKernels) List() ([]KnownKernel, error) {
	// A missing file comes first: a user who has never met a kernel with a key may have any
	// directory modes.
	if _, err := os.Lstat(k.Path); k.Path == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := judgeDirOf(k.Path); err != nil {
		return nil, err
	}
	text, err := readOnce(k.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read known kernels: %w", err)
	}
	var known []KnownKernel
	for number, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.SplitN(line, " ", 3)
		if len(fields) == 3 {
			key, _, failure := parseKeyLine(fields[0] + " " + fields[1])
			if failure == nil && checkKernelName(fields[2]) == nil {
				known = append(known, KnownKernel{Socket: fields[2], Key: key})
				continue
			}
		}
		return nil, fault.Unsafe(k.Path, fmt.Sprintf("has a malformed line %d", number+1), "remove that line, or the file if you do not know it")
	}
	return known, nil
}

// Lookup returns the known key of the kernel at socket, or the zero key.
func (k KnownKernels) Lookup(socket string) (PublicKey, error) {
	known, err := k.List()
	for _, one := range known {
		if one.Socket == socket {
			return one.Key, nil
		}
	}
	return PublicKey{}, err
}

// Pin remembers the key of the kernel at socket if none is known, and reports whether it was new.
// If another one is known it returns a *fault.Fault of HostChanged and changes nothing.
func (k KnownKernels) Pin(ctx context.Context, socket string, key PublicKey) (fresh bool, err error) {
	old, err := k.Lookup(socket)
	if err != nil || old == key {
		return false, err
	}
	err = k.update(ctx, func(known []KnownKernel) ([]KnownKernel, error) {
		for _, one := range known {
			switch {
			case one.Socket == socket && one.Key == key: // another client pinned it first
				fresh = false
				return known, nil
			case one.Socket == socket:
				return nil, hostChanged(socket, one.Key, key)
			}
		}
		fresh = true
		return append(known, KnownKernel{Socket: socket, Key: key}), nil
	})
	return fresh && err == nil, err
}

// Accept replaces the known key of the kernel at socket. A person decides that.
func (k KnownKernels) Accept(ctx context.Context, socket string, key PublicKey) error {
	return k.update(ctx, func(known []KnownKernel) ([]KnownKernel, error) {
		return append(without(known, socket), KnownKernel{Socket: socket, Key: key}), nil
	})
}

// Forget removes the known key of the kernel at socket.
func (k KnownKernels) Forget(ctx context.Context, socket string) error {
	return k.update(ctx, func(known []KnownKernel) ([]KnownKernel, error) { return without(known, socket), nil })
}

func without(known []KnownKernel, socket string) []KnownKernel {
	var rest []KnownKernel
	for _, one := range known {
		if one.Socket != socket {
			rest = append(rest, one)
		}
	}
	return rest
}

// hostChanged is the error of a changed host key, which a person has to judge.
func hostChanged(socket string, old, now PublicKey) *fault.Fault {
	return fault.AuthHostChanged.New("the kernel at %s has another host key than before (%s, it was %s): its state directory was recreated, or another program answers in its place. "+
		"Nothing was signed. If you know why, drop the old key with %q", socket, now.Fingerprint(), old.Fingerprint(), forget(socket)).With("key", now.Fingerprint())
}

// forget returns the command that drops the key of the kernel with that name.
func forget(name string) string {
	if strings.HasPrefix(name, tlsScheme) {
		return "pwos --kernel " + name + " auth trust --forget"
	}
	return "pwos auth trust --forget"
}

// update replaces the file by the result of change, atomically, one client at a time.
func (k KnownKernels) update(ctx context.Context, change func([]KnownKernel) ([]KnownKernel, error)) error {
	if k.Path == "" {
		return errors.New("write known kernels: no directory for the file: set HOME or PWOS_CONFIG")
	}
	dir := filepath.Dir(k.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write known kernels: %w", err)
	}
	if err := judgeDirOf(k.Path); err != nil {
		return err
	}
	unlock, err := lockFile(ctx, k.Path+".lock")
	if err != nil {
		return fmt.Errorf("write known kernels: %w", err)
	}
	defer unlock()
	known, err := k.List()
	if err != nil {
		return err
	}
	if known, err = change(known); err != nil {
		return err
	}
	var text bytes.Buffer
	for _, one := range known {
		if err := checkKernelName(one.Socket); err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s %s\n", one.Key, one.Socket)
	}
	// A crash leaves the old file or the new one.
	err = replace.File(k.Path, text.Bytes(), 0o600)
	if err != nil {
		return fmt.Errorf("write known kernels: %w", err)
	}
	return nil
}

// lockFile locks the file at path, which it makes. The lock also ends with the process.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, _, err := regular.Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	patient, cancel := context.WithTimeoutCause(ctx, lockTime, errors.New("another client holds the lock: try again"))
	defer cancel()
	if err := lockfile.Wait(patient, file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = lockfile.Release(file) }, nil // nothing was written
}
