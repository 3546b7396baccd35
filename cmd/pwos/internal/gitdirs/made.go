package gitdirs

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/internal/replace"
)

// Made is a repository that appeared while an agent worked.
type Made struct {
	At   string
	Runs []string // its settings that run something, and its hooks
}

// places returns what repositories are known by.
func places(repositories []string) map[string]string {
	found := map[string]string{}
	for _, at := range repositories {
		found[at] = identity(at)
	}
	return found
}

// identity is what a repository is known by: the directory, or the file .git with what it says.
func identity(at string) string {
	path := filepath.Join(at, ".git")
	info, err := os.Lstat(path)
	if err != nil { // a bare one
		if info, err = os.Lstat(at); err != nil {
			return ""
		}
	}
	number := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		number = st.Ino
	}
	if !info.Mode().IsRegular() {
		return fmt.Sprintf("%d", number)
	}
	text, err := readRegular(path, 4096)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%d %s", number, hex.EncodeToString(sum[:]))
}

// noteMade returns the repositories that appeared during a session, and notes which files .git are among them.
func (s Store) noteMade(session *Session) (list []Made, err error) {
	made, err := s.made()
	if err != nil {
		return nil, err
	}
	now := places(Search(session.Roots))
	noted := false
	for _, at := range slices.Sorted(maps.Keys(now)) {
		if before, is := session.Places[at]; is && before == now[at] {
			continue
		}
		list = append(list, Made{At: at, Runs: runsAt(at)})
		if info, err := os.Lstat(filepath.Join(at, ".git")); err == nil && info.Mode().IsRegular() {
			made[filepath.Join(at, ".git")], noted = now[at], true
		}
	}
	for _, k := range session.Repos { // submodules, whose directories are in that of the repository
		commons, _ := gitDirs(k.Repo)
		for _, dir := range commons {
			if !slices.ContainsFunc(session.all(), func(h *held) bool { return filepath.Dir(h.Path) == dir }) {
				list = append(list, Made{At: dir, Runs: runsIn(dir)})
			}
		}
	}
	if !noted {
		return list, nil
	}
	for file := range made { // those that are no longer there
		if identity(filepath.Dir(file)) != made[file] {
			delete(made, file)
		}
	}
	var text bytes.Buffer
	err = gob.NewEncoder(&text).Encode(made)
	if err == nil {
		err = replace.File(s.madeFile(), text.Bytes(), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("note repositories that agents made: %w", err)
	}
	return list, nil
}

func (s Store) madeFile() string { return filepath.Join(string(s), "made") }

// made returns the files .git that agents made, with what they are known by.
func (s Store) made() (map[string]string, error) {
	made := map[string]string{}
	text, err := os.ReadFile(s.madeFile())
	if errors.Is(err, fs.ErrNotExist) {
		return made, nil
	}
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(text)).Decode(&made)
	}
	if err != nil {
		return nil, fmt.Errorf("read which repositories agents made: %w", err)
	}
	return made, nil
}

// madeBy reports whether an agent has made a file .git, or one that has not ended may have. If that cannot be read, it has.
func (s Store) madeBy(file string) bool {
	at := filepath.Dir(file)
	is := identity(at)
	made, err := s.made()
	if err != nil || made[file] == is {
		return true
	}
	sessions, err := s.sessions()
	return err != nil || slices.ContainsFunc(sessions, func(other *Session) bool {
		covers := slices.ContainsFunc(other.Roots, func(root string) bool { return isIn(at, root) })
		return !other.Ended && covers && other.Places[at] != is
	})
}

// runsAt returns what a repository at a place runs.
func runsAt(at string) []string {
	git := filepath.Join(at, ".git")
	info, err := os.Lstat(git)
	switch {
	case err != nil:
		git = at
	case info.Mode().IsRegular():
		text, err := readRegular(git, 4096)
		if err != nil {
			return nil
		}
		to := strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir: "))
		if git = to; !filepath.IsAbs(to) {
			git = filepath.Join(at, to)
		}
		if common, err := readRegular(filepath.Join(git, "commondir"), 4096); err == nil {
			git = filepath.Join(git, strings.TrimSpace(string(common)))
		}
	}
	return runsIn(git)
}

// runsIn returns the settings in a directory of git that run something, and its hooks.
func runsIn(git string) (list []string) {
	for _, name := range []string{"config", "config.worktree"} {
		settings, err := parseFile(filepath.Join(git, name))
		if err != nil {
			list = append(list, name+", which git cannot read")
		}
		list = append(list, settings.runs()...)
	}
	entries, _ := os.ReadDir(filepath.Join(git, "hooks")) // there are none
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(git, "hooks", e.Name())); err == nil && info.Mode()&0o111 != 0 && info.Mode().IsRegular() && !strings.HasSuffix(e.Name(), ".sample") {
			list = append(list, "hooks/"+e.Name())
		}
	}
	return list
}
