package gitdirs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Change is a change of an agent that the user has not accepted.
type Change struct {
	Agent string
	File  string   // the user's own file of settings, or directory
	Key   string   // a key of the file, or the name of a file in the directory
	Is    []string // values that the agent gave it, or the digest of the file; none: it removed it
	Was   []string // those of the user now
	Base  []string // those at the start

	session *Session
	held    *held
}

// IsSetting reports whether the change is one of a key, not of a file.
func (c *Change) IsSetting() bool { return !c.held.IsDir }

// id names the change in a manifest.
func (c *Change) id() string { return fmt.Sprintf("%s\x00%s\x00%q", c.File, c.Key, c.Is) }

// settings returns the settings at the start, those of the agent, and those of the user now. A file that git cannot read has
// changed nothing.
func (s *Session) settings(h *held) (base, ours, real Settings, err error) {
	before, err := readRegular(s.base(h), maxConfig)
	if err != nil {
		return nil, nil, nil, err
	}
	after, err := readRegular(filepath.Join(s.dir, h.Copy), maxConfig)
	if err != nil || string(before) == string(after) {
		return nil, nil, nil, nil
	}
	if base, err = Parse(before); err != nil {
		return nil, nil, nil, err
	}
	if ours, err = Parse(after); err != nil {
		return nil, nil, nil, nil
	}
	real, err = parseFile(h.Path)
	return base, ours, real, err
}

// changedKeys returns the keys that the agent has changed, and that have another value in the user's file.
func changedKeys(base, ours, real Settings) (keys []string) {
	for _, settings := range []Settings{base, ours} {
		for key := range settings {
			if !slices.Contains(keys, key) && !slices.Equal(base[key], ours[key]) && !slices.Equal(real[key], ours[key]) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// takeSafe takes over what is safe of the settings of a file.
func (s *Session) takeSafe(k *kept, h *held) (taken []string, err error) {
	base, ours, real, err := s.settings(h)
	if err != nil || base == nil {
		return nil, err
	}
	var users Settings
	about := &known{base: base, ours: ours, real: real, common: filepath.Dir(h.Path), users: func() Settings {
		if users == nil {
			users = ofUser()
		}
		return users
	}}
	if k.Listed && filepath.Dir(h.Path) == k.Common {
		about.branches = map[string]bool{}
		for _, name := range k.Branches {
			about.branches[name] = true
		}
	}
	for _, key := range changedKeys(base, ours, real) {
		if about.isSafe(key) {
			taken = append(taken, key)
		}
	}
	for _, key := range taken {
		if err := set(h.Path, key, ours[key]); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// changes returns what the agent has changed and the user has not.
func (s *Session) changes() (left []Change, err error) {
	add := func(c Change) {
		c.Agent, c.session = s.Agent, s
		if !slices.Contains(s.Dropped, c.id()) {
			left = append(left, c)
		}
	}
	for _, k := range s.Repos {
		for _, h := range k.Configs {
			base, ours, real, err := s.settings(h)
			if err != nil {
				return nil, fmt.Errorf("read settings of %s: %w", h.Path, err)
			}
			for _, key := range changedKeys(base, ours, real) {
				add(Change{File: h.Path, Key: key, Is: ours[key], Was: real[key], Base: base[key], held: h})
			}
		}
		for _, h := range k.Dirs {
			after, err := list(filepath.Join(s.dir, h.Copy))
			if err != nil {
				continue // it holds what git cannot use
			}
			now, _ := list(h.Path) // nothing, if it is gone
			for _, name := range slices.Sorted(maps.Keys(after)) {
				if strings.HasSuffix(name, ".sample") {
					continue // git does not run it
				}
				file := after[name]
				if digest := file.digest(); digest != h.Files[name] && digest != now[name].digest() {
					add(Change{File: h.Path, Key: name, Is: []string{digest}, Was: digests(now, name), Base: h.digests(name), held: h})
				}
			}
			for _, name := range slices.Sorted(maps.Keys(h.Files)) {
				if _, is := after[name]; !is && !strings.HasSuffix(name, ".sample") && now[name].digest() == h.Files[name] {
					add(Change{File: h.Path, Key: name, Was: digests(now, name), Base: h.digests(name), held: h})
				}
			}
		}
	}
	return left, nil
}

// digests returns the digest of a file of a directory; none if there is no such file.
func digests(files map[string]content, name string) []string {
	if file, is := files[name]; is {
		return []string{file.digest()}
	}
	return nil
}

func (h *held) digests(name string) []string {
	if digest, is := h.Files[name]; is {
		return []string{digest}
	}
	return nil
}

// Runs reports whether the user's git would run something because of the change, or read another file of settings.
func (c *Change) Runs() bool {
	return c.Is != nil && (!c.IsSetting() || len(Settings{c.Key: c.Is}.runs()) > 0)
}

// Text returns the text and the mode of a file that the agent has changed in a directory.
func (c *Change) Text() (text []byte, mode os.FileMode, err error) {
	files, err := list(filepath.Join(c.session.dir, c.held.Copy))
	if err != nil {
		return nil, 0, err
	}
	file, is := files[c.Key]
	if !is || file.link != "" || file.digest() != c.Is[0] {
		return nil, 0, fmt.Errorf("%s is no regular file", c.Key)
	}
	return file.text, file.mode, nil
}

// Answer makes a change in the user's own file, or forgets it. It does neither if the user has changed that since c was read.
func (s Store) Answer(ctx context.Context, c *Change, take bool) (err error) {
	unlock, err := s.locked(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	left, err := s.Changes()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(left, func(now Change) bool { return now.session.dir == c.session.dir && now.id() == c.id() })
	switch {
	case i < 0:
		return nil // it was answered
	case !take:
		session := left[i].session
		session.Dropped = append(session.Dropped, c.id())
		return session.save()
	case !slices.Equal(left[i].Was, c.Was):
		return fmt.Errorf("%s changed meanwhile", filepath.Join(c.File, c.Key))
	}
	return left[i].take()
}

// take makes a change in the user's own file.
func (c *Change) take() error {
	if c.IsSetting() {
		return set(c.File, c.Key, c.Is)
	}
	to := filepath.Join(c.File, c.Key)
	if c.Is == nil {
		return os.Remove(to)
	}
	text, mode, err := c.Text()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.WriteFile(to, text, mode), asParent(to))
}
