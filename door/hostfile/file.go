// Package hostfile changes one entry of an agent host's configuration file.
//
// The rest of the file is unchanged. The package replaces a file atomically, keeps its mode and symbolic link, and leaves a
// backup of the old text next to it. It does not change a file that it cannot parse.
package hostfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/internal/replace"
)

// Change is an edit of a file: its text before and after.
type Change struct {
	Path          string // as it was given
	Before, After []byte

	target string      // the path after following symbolic links
	mode   fs.FileMode // mode of the existing file, or of a new one
	there  bool        // the file exists
}

// most bounds a configuration file, in bytes.
const most = 64 << 20

// Plan returns the change that edit makes to the text of a file, without writing it. If the file does not exist, its text is "", and
// Apply creates it with the given mode.
func Plan(path string, mode fs.FileMode, edit func(text []byte) ([]byte, error)) (*Change, error) {
	c := &Change{Path: path, target: path, mode: mode}
	switch target, err := filepath.EvalSymlinks(path); {
	case err == nil:
		c.target, c.there = target, true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("find %s: %w", path, err)
	default:
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s is a dangling link: remove it, or create its target", path)
		}
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	var err error
	if c.After, err = edit(bytes.Clone(c.Before)); err != nil {
		return nil, fmt.Errorf("%s is unchanged: %w", path, err)
	}
	return c, nil
}

func (c *Change) read() error {
	if !c.there {
		return nil
	}
	info, err := os.Stat(c.target)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", c.Path)
	case ok && int(owner.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to user %d, not to you", c.Path, owner.Uid)
	case info.Size() > most:
		return fmt.Errorf("%s is too long to be a configuration: %d bytes", c.Path, info.Size())
	}
	c.mode = info.Mode().Perm()
	if c.Before, err = os.ReadFile(c.target); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	return nil
}

// Empty reports whether there is nothing to change.
func (c *Change) Empty() bool { return bytes.Equal(c.Before, c.After) }

// Apply writes the file, and returns the path of the backup of its old text; "" if the file is new. If the file was
// changed after Plan, Apply writes nothing and returns an error.
func (c *Change) Apply(now time.Time) (backup string, err error) {
	if c.there {
		text, err := os.ReadFile(c.target)
		if err != nil {
			return "", fmt.Errorf("read configuration: %w", err)
		}
		if !bytes.Equal(text, c.Before) {
			return "", fmt.Errorf("%s was changed meanwhile: end the program that uses it, and try again", c.Path)
		}
		if backup, err = c.keep(now); err != nil {
			return "", err
		}
	} else if err := os.MkdirAll(filepath.Dir(c.target), 0o700); err != nil {
		return "", fmt.Errorf("make directory of configuration: %w", err)
	}
	if err := replace.File(c.target, c.After, c.mode); err != nil {
		return backup, fmt.Errorf("write configuration: %w", err)
	}
	return backup, nil
}

// keep writes the old text to a backup file, and returns its path.
func (c *Change) keep(now time.Time) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(c.target), filepath.Base(c.target)+"."+now.Format("20060102-150405")+".*.bak")
	if err == nil {
		_, err = f.Write(c.Before)
		if err = errors.Join(err, f.Chmod(c.mode), f.Sync(), f.Close()); err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}
	if err != nil {
		return "", fmt.Errorf("keep a backup: %w", err)
	}
	return f.Name(), nil
}

// around is the number of unchanged lines that a Diff shows before and after the changed ones.
const around = 2

// Diff returns the change as text: the removed lines, then the added lines, with the lines around them.
func (c *Change) Diff() string {
	if c.Empty() {
		return ""
	}
	before, after := lines(c.Before), lines(c.After)
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", c.Path, c.Path)
	show := func(mark string, some []string) {
		for _, line := range some {
			b.WriteString(mark + line + "\n")
		}
	}
	show(" ", before[max(0, head-around):head])
	show("-", before[head:len(before)-tail])
	show("+", after[head:len(after)-tail])
	show(" ", before[len(before)-tail:len(before)-tail+min(tail, around)])
	return b.String()
}

func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
