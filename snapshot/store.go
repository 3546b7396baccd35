package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// DefaultLimit is the maximum size of a copy without shared blocks, in bytes.
const DefaultLimit = 2 << 30

// Snapshot describes a copy.
type Snapshot struct {
	ID      string   `json:"id" keep:"always" minlen:"1" doc:"Its name."`
	Dir     string   `json:"dir" keep:"always" minlen:"1" doc:"The directory that it is a copy of."`
	Made    int64    `json:"made" keep:"always" doc:"When, in milliseconds since the Unix epoch."`
	Files   int64    `json:"files" keep:"always" doc:"Number of files and symbolic links."`
	Bytes   int64    `json:"bytes" keep:"always" doc:"Bytes that were copied; blocks that are shared with the original are not counted."`
	Skip    []string `json:"skip,omitzero" keep:"always" doc:"Patterns of what was left alone."`
	LeftOut []string `json:"left_out,omitzero" keep:"always" doc:"Entries that cannot be copied, and why."`
	PID     int64    `json:"pid,omitzero" keep:"always" doc:"Of a copy that an undo made: the process that was undone."`
	First   string   `json:"first,omitzero" keep:"always" doc:"Of a copy that an undo made: the copy from before the process."`
	Undoing string   `json:"undoing,omitzero" keep:"always" doc:"The copy that has what was replaced, if a restore from this one was cut short."`
}

// Time is when the copy was made.
func (s *Snapshot) Time() time.Time { return time.UnixMilli(s.Made) }

// Names of the parts of a copy, and of an unfinished one.
const (
	treeName   = "tree"
	aboutName  = "snapshot.json"
	makingName = "making-"
)

var ids = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^s[a-z0-9]{8}$`) })

// IsID reports whether a text has the form of a copy's id, which a number does not.
func IsID(text string) bool { return ids().MatchString(text) }

// Store is a directory of copies.
type Store struct{ dir string }

// Open opens the store of a state directory, and creates it if it is missing.
func Open(stateDir string) (*Store, error) {
	dir := filepath.Join(stateDir, "snapshots")
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of copies: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make directory of copies: %w", err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open directory of copies: %w", err)
	case !info.IsDir() || info.Mode().Perm()&0o077 != 0:
		return nil, fault.PlaceUnsafe.New("%s must be a directory of mode 0700", dir)
	}
	return &Store{dir: dir}, nil
}

// What configures a copy.
type What struct {
	Limit int64    // bytes, if blocks cannot be shared
	Skip  []string // patterns of paths to omit
	// For a copy that an undo makes:
	PID   int64
	First string
}

// Take copies a directory. If it fails, it leaves no copy behind.
func (s *Store) Take(ctx context.Context, dir string, what What) (*Snapshot, error) {
	if err := skips(what.Skip).check(); err != nil {
		return nil, err
	}
	if !utf8.ValidString(dir) {
		return nil, fault.SnapshotFailed.New("copy %q: the path is not UTF-8", dir)
	}
	made := &Snapshot{
		ID: "s" + strings.ToLower(random("")[:8]), Dir: dir, Made: time.Now().UnixMilli(), Skip: what.Skip, PID: what.PID, First: what.First,
	}
	unlock, err := s.begin(made.ID)
	if err != nil {
		return nil, err
	}
	c := &copier{ctx: ctx, skip: what.Skip, limit: what.Limit, forced: what.PID != 0}
	if err := s.fill(c, made); err != nil {
		return nil, errors.Join(failed("copy", dir, err), s.discard(makingName+made.ID), unlock())
	}
	if err := os.Rename(s.path(makingName+made.ID), s.path(made.ID)); err != nil {
		return nil, errors.Join(err, s.discard(makingName+made.ID), unlock())
	}
	return made, unlock()
}

// begin creates the directory of a new copy, and locks it, so that a concurrent Prune does not remove it as an interrupted
// one.
func (s *Store) begin(id string) (unlock func() error, err error) {
	if err := os.Mkdir(s.path(makingName+id), 0o700); err != nil {
		return nil, fmt.Errorf("make copy: %w", err)
	}
	return s.lock(makingName + id)
}

// lock locks a copy, complete or not.
func (s *Store) lock(name string) (unlock func() error, err error) {
	file, err := os.Open(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notThere(name)
	}
	if err != nil {
		return nil, fmt.Errorf("lock copy: %w", err)
	}
	if err := lockfile.Try(file); err != nil {
		if errors.Is(err, lockfile.ErrHeld) {
			err = fault.SnapshotBusy.New("another command is using copy %s", name).WithFix("wait until it has ended")
		}
		return nil, errors.Join(err, file.Close())
	}
	return func() error { return lockfile.Release(file) }, nil
}

func notThere(id string) error {
	return fault.SnapshotNone.New("no copy %s is kept: it may have been removed, since only the latest are kept (snapshots.keep, snapshots.keep_for)", id)
}

// fill copies the tree, and writes its description.
func (s *Store) fill(c *copier, made *Snapshot) (err error) {
	source, err := openTop(made.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	store, err := openTop(s.path(makingName + made.ID))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := c.measure(source, store, ""); err != nil {
		return err
	}
	if !c.share {
		if err := room(store, c.bytes); err != nil {
			return err
		}
	}
	c.bytes = 0
	to, err := store.mkdir(treeName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := c.tree(source, to, ""); err != nil {
		return err
	}
	made.Files, made.Bytes = c.files, c.bytes
	for _, text := range c.leftOut {
		made.LeftOut = append(made.LeftOut, strings.Trim(strconv.Quote(text), `"`))
	}
	if err := s.describe(makingName+made.ID, made); err != nil {
		return err
	}
	return flush(store)
}

// describe replaces the description of a copy.
func (s *Store) describe(name string, about *Snapshot) error {
	text, err := schema.Marshal(about)
	if err != nil {
		return err
	}
	at := filepath.Join(s.path(name), aboutName)
	if err := os.WriteFile(at+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(at+".new", at)
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// Get returns the description of a copy.
func (s *Store) Get(id string) (*Snapshot, error) {
	if !IsID(id) {
		return nil, notThere(id)
	}
	text, err := os.ReadFile(filepath.Join(s.path(id), aboutName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notThere(id)
	}
	if err != nil {
		return nil, fmt.Errorf("read copy: %w", err)
	}
	about, bad := schema.TypeOf[Snapshot]().Decode(text)
	if bad != nil || about.(*Snapshot).ID != id {
		return nil, fault.SnapshotFailed.New("%s is damaged: %v", filepath.Join(s.path(id), aboutName), bad).
			WithFix("remove the copy with %s", quote.Command("pwos", "snapshots", "rm", id))
	}
	return about.(*Snapshot), nil
}

// List returns the readable copies, the oldest first.
func (s *Store) List() ([]*Snapshot, error) {
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	var list []*Snapshot
	for _, name := range names {
		if about, err := s.Get(name.Name()); err == nil {
			list = append(list, about)
		}
	}
	slices.SortFunc(list, func(a, b *Snapshot) int {
		return compare(a.Made, b.Made, a.ID, b.ID)
	})
	return list, nil
}

func compare(a, b int64, x, y string) int {
	if a != b {
		return int(max(-1, min(1, a-b)))
	}
	return strings.Compare(x, y)
}

// Remove removes a copy.
func (s *Store) Remove(id string) error {
	if !IsID(id) {
		return notThere(id)
	}
	return s.drop(id)
}

// drop removes a directory of the store that is not in use. It renames it first, so that a partly removed copy never looks
// complete.
func (s *Store) drop(name string) error {
	unlock, err := s.lock(name)
	if err != nil {
		return err
	}
	if id := strings.TrimPrefix(name, makingName); id == name {
		if err := os.Rename(s.path(name), s.path(makingName+id)); err != nil {
			return errors.Join(err, unlock())
		}
		name = makingName + id
	}
	return errors.Join(s.discard(name), unlock())
}

// discard removes a renamed directory of the store.
func (s *Store) discard(name string) (err error) {
	store, err := openTop(s.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	e, err := store.entry(name)
	if err != nil {
		return ignoreGone(err)
	}
	return store.remove(e)
}

// Prune removes interrupted copies, those older than keepFor, and all except for the latest keep ones. It keeps copies of
// running processes. It returns the removed copies.
func (s *Store) Prune(now time.Time, keep int, keepFor time.Duration, running map[string]bool) (removed []*Snapshot, err error) {
	names, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	for _, name := range names {
		if strings.HasPrefix(name.Name(), makingName) {
			if err := s.drop(name.Name()); err != nil && !busy(err) {
				return nil, err
			}
		}
	}
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	for i, one := range list {
		old := now.Sub(one.Time()) > keepFor || len(list)-i > keep
		if !old || running[one.ID] || one.Undoing != "" {
			continue
		}
		if err := s.drop(one.ID); err != nil {
			if busy(err) {
				continue
			}
			return removed, err
		}
		removed = append(removed, one)
	}
	return removed, nil
}

// busy reports whether another command uses a copy, or has just removed it.
func busy(err error) bool {
	return errors.Is(err, fault.SnapshotBusy) || errors.Is(err, fault.SnapshotNone)
}
