// Package login keeps the login of an agent host whose tokens rotate, in a home of that host that only the kernel has. The user logs in
// there with the host's own command, and the host renews the login there: no client id of a vendor is here, and nothing of the login of the
// user's own sessions.
package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/internal/regular"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/internal/rmtree"
	"github.com/promptware-os/pwos/schema"
)

// Home has the login of a host. Its directory is below the state directory, which is hidden from every program of an agent.
type Home struct {
	Name string // of the login, and of the host's program
	all  string // the directory of all logins
}

// codex is the name of the host whose login is kept so, and of its program.
const codex = "codex"

// tokensFile is the file in the host's home that has its login. The host truncates it, and then writes it.
const tokensFile = "auth.json"

// Named returns the home of a login, below the state directory of a kernel; nil if it has none, since its credential does not rotate.
func Named(state, name string) *Home {
	if name != codex {
		return nil
	}
	return &Home{Name: name, all: filepath.Join(state, "logins")}
}

// Homes returns all of them.
func Homes(state string) []*Home { return []*Home{Named(state, codex)} }

func (h *Home) dir() string { return filepath.Join(h.all, h.Name) }

func (h *Home) tokens() string { return filepath.Join(h.dir(), tokensFile) }

// settings is the file with the variables that the host has at a renewal.
func (h *Home) settings() string { return filepath.Join(h.all, h.Name+".json") }

// Held reports whether there is a login.
func (h *Home) Held() bool {
	_, err := os.Lstat(h.tokens())
	return err == nil
}

// Command returns the host's command that logs in, in the home at dir, with the user's arguments, and the variable that makes it use that
// home.
func (h *Home) Command(dir string, args []string) (argv []string, env map[string]string) {
	return append([]string{h.Name, "login", "-c", keepsFile}, args...), homeVariables(dir)
}

// keepsFile makes the host keep its login in the file, where it is, and not in a keyring.
const keepsFile = `cli_auth_credentials_store="file"`

func homeVariables(dir string) map[string]string { return map[string]string{"CODEX_HOME": dir} }

// New makes an empty home for a login, which is locked, so that Forget leaves it, until remove removes it or this process ends.
func (h *Home) New() (dir string, remove func() error, err error) {
	if err := os.MkdirAll(h.all, 0o700); err != nil {
		return "", nil, fmt.Errorf("make home for a login: %w", err)
	}
	dir, err = os.MkdirTemp(h.all, h.Name+"-")
	if err != nil {
		return "", nil, fmt.Errorf("make home for a login: %w", err)
	}
	release, err := lockDir(dir)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("make home for a login: %w", err), rmtree.Dir(dir))
	}
	return dir, func() error { return errors.Join(rmtree.Dir(dir), release()) }, nil
}

// lockDir locks a home that New has made.
func lockDir(dir string) (release func() error, err error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := lockfile.Try(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error { return lockfile.Release(file) }, nil
}

// Keep takes the login that the host has left in the home at dir. env are the variables with which the host renews it.
func (h *Home) Keep(ctx context.Context, dir string, env map[string]string) (err error) {
	made := filepath.Join(dir, tokensFile)
	text, err := read(made)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s has left no login", h.Name)
	case err != nil:
		return err
	case parse(text) == nil:
		return fmt.Errorf("%s has left a login that has no tokens to renew", h.Name)
	}
	settings, err := schema.Marshal(env)
	if err != nil {
		return err
	}
	release, err := h.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := os.MkdirAll(h.dir(), 0o700); err != nil {
		return fmt.Errorf("keep login: %w", err)
	}
	if err := replace.File(h.settings(), settings, 0o600); err != nil {
		return fmt.Errorf("keep login: %w", err)
	}
	if err := replace.File(h.tokens(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("keep login: %w", err)
	}
	return nil
}

// Forget removes the login, and what logins that were interrupted have left, but not the home of one that is being made. It returns false
// if there is none. A renewal that is running ends first.
func (h *Home) Forget(ctx context.Context) (had bool, err error) {
	release, err := h.lock(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	had = h.Held()
	entries, err := os.ReadDir(h.all)
	for _, entry := range entries {
		at := filepath.Join(h.all, entry.Name())
		switch {
		case entry.Name() == h.Name:
			err = errors.Join(err, rmtree.Dir(at))
		case strings.HasPrefix(entry.Name(), h.Name+"-"):
			err = errors.Join(err, removeLeft(at))
		}
	}
	if failed := os.Remove(h.settings()); !errors.Is(failed, fs.ErrNotExist) {
		err = errors.Join(err, failed)
	}
	if err != nil {
		return had, fmt.Errorf("remove login: %w", err)
	}
	return had, nil
}

// removeLeft removes a home that New has made, unless it is locked.
func removeLeft(dir string) (err error) {
	release, err := lockDir(dir)
	if errors.Is(err, lockfile.ErrHeld) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	return rmtree.Dir(dir)
}

// lock makes this process the one that changes the login.
func (h *Home) lock(ctx context.Context) (release func() error, err error) {
	if err := os.MkdirAll(h.all, 0o700); err != nil {
		return nil, fmt.Errorf("lock login: %w", err)
	}
	file, _, err := regular.Open(filepath.Join(h.all, h.Name+".lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("lock login: %w", err)
	}
	if err := lockfile.Wait(ctx, file); err != nil {
		return nil, errors.Join(fmt.Errorf("the login is being renewed: %w", err), file.Close())
	}
	return func() error { return lockfile.Release(file) }, nil
}

// longest bounds the file of a login, in bytes.
const longest = 256 << 10

// read returns the text of a file of the host.
func read(path string) (text string, err error) {
	file, _, err := regular.Open(path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	all, err := io.ReadAll(io.LimitReader(file, longest+1))
	if len(all) > longest {
		return "", fmt.Errorf("%s is longer than %d bytes", path, longest)
	}
	return strings.TrimSpace(string(all)), err
}
