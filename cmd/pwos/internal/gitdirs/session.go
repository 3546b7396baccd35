package gitdirs

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/internal/replace"
)

// Store is the directory with the private copies of all agents.
type Store string

// Session is what one agent has of the repositories of its project.
type Session struct {
	dir  string
	lock *os.File // nil: another process has begun it
	manifest
}

// manifest is the file of a session.
type manifest struct {
	Agent string
	PID   int64 // 0: it was not started
	Roots []string
	Repos []*kept
	// Places are the repositories that were there at the start, by the file or directory that makes one.
	Places map[string]string
	// Dropped are the changes that the user does not want.
	Dropped []string
	Ended   bool // only changes are left of it
}

// kept is a repository.
type kept struct {
	Repo
	Configs  []*held // copied files of settings
	Dirs     []*held // copied directories
	Fixed    []*held // what cannot be changed
	Branches []string
	Listed   bool              // Branches has all of them
	Heads    map[string]string // HEAD of each directory of git of Repo
	Parts    []string          // directories that must be there
}

// held is a file or directory that the agent cannot change.
type held struct {
	Path  string
	Copy  string // relative to the session's directory
	Fresh bool   // it is there for the agent only
	IsDir bool
	Files map[string]string // digests of what was in a directory
}

const manifestName = "session"

// Begin finds the repositories in directories that an agent may write, and makes private copies of what the user's git would run. nil means
// that there is none.
func (s Store) Begin(ctx context.Context, agent string, roots []string) (_ *Session, refused []Refused, err error) {
	at := Search(roots) // once: it reads up to a thousand directories
	found, refused := classify(at, roots, s.madeBy)
	if len(found) == 0 {
		return nil, refused, nil
	}
	unlock, err := s.locked(ctx)
	if err != nil {
		return nil, refused, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	fresh := map[string]bool{}
	others, err := s.sessions()
	if err != nil {
		return nil, refused, err
	}
	for _, other := range others {
		if other.Ended {
			continue
		}
		for _, h := range other.all() {
			fresh[h.Path] = fresh[h.Path] || h.Fresh
		}
	}
	session := &Session{dir: filepath.Join(string(s), strings.ToLower(rand.Text())), manifest: manifest{Agent: agent, Roots: roots, Places: places(at)}}
	if err := os.Mkdir(session.dir, 0o700); err != nil {
		return nil, refused, fmt.Errorf("make copies for git: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, session.remove())
		}
	}()
	if session.lock, err = os.OpenFile(filepath.Join(session.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		err = lockfile.Try(session.lock)
	}
	if err != nil {
		return nil, refused, fmt.Errorf("make copies for git: %w", err)
	}
	for _, repo := range found {
		if err := session.keep(repo, fresh); err != nil {
			return nil, refused, fmt.Errorf("make copies for git: %w", err)
		}
	}
	return session, refused, session.save()
}

// locked locks the store.
func (s Store) locked(ctx context.Context) (unlock func() error, err error) {
	if err := os.MkdirAll(string(s), 0o700); err != nil {
		return nil, fmt.Errorf("make copies for git: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(string(s), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = lockfile.Wait(ctx, file)
	}
	if err != nil {
		return nil, fmt.Errorf("make copies for git: %w", err)
	}
	return func() error { return lockfile.Release(file) }, nil
}

// sessions reads all sessions.
func (s Store) sessions() (list []*Session, err error) {
	entries, err := os.ReadDir(string(s))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list copies for git: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		one := &Session{dir: filepath.Join(string(s), entry.Name())}
		text, err := os.ReadFile(filepath.Join(one.dir, manifestName))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being made, or was not
		}
		if err == nil {
			err = gob.NewDecoder(bytes.NewReader(text)).Decode(&one.manifest)
		}
		if err != nil {
			return nil, fmt.Errorf("read copies for git: %w", err)
		}
		list = append(list, one)
	}
	return list, nil
}

func (s *Session) save() error {
	var text bytes.Buffer
	err := gob.NewEncoder(&text).Encode(&s.manifest)
	if err == nil {
		err = replace.File(filepath.Join(s.dir, manifestName), text.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write copies for git: %w", err)
	}
	return nil
}

// Started notes the PID of the agent.
func (s *Session) Started(pid int64) error {
	s.PID = pid
	return s.save()
}

// all returns all that is held.
func (s *Session) all() (list []*held) {
	for _, k := range s.Repos {
		list = slices.Concat(list, k.Configs, k.Dirs, k.Fixed)
	}
	return list
}

// Copies returns what the kernel puts at which path.
func (s *Session) Copies() map[string]string {
	copies := map[string]string{}
	for _, k := range s.Repos {
		for _, dir := range []string{k.Git, k.Common} {
			if !slices.ContainsFunc(s.Roots, func(root string) bool { return isIn(dir, root) }) {
				copies[dir] = dir
			}
		}
	}
	for _, k := range s.Repos {
		for _, dir := range k.Parts {
			copies[dir] = dir
		}
	}
	for _, h := range s.all() {
		copies[h.Path] = ""
		if h.Copy != "" {
			copies[h.Path] = filepath.Join(s.dir, h.Copy)
		}
	}
	return copies
}

// remove removes a session. The agent must have ended.
func (s *Session) remove() error {
	err := os.RemoveAll(s.dir)
	if err != nil { // the agent has taken the rights to directories
		_ = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && err == nil {
				_ = os.Chmod(path, 0o700) // before WalkDir reads it
			}
			return nil
		})
		err = os.RemoveAll(s.dir)
	}
	return errors.Join(err, s.release())
}

func (s *Session) release() error {
	if s.lock == nil {
		return nil
	}
	defer func() { s.lock = nil }()
	return lockfile.Release(s.lock)
}
