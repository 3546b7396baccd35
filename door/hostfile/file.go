// Package hostfile changes one entry of an agent host's configuration file, leaving everything else in it as it is.
//
// A file is changed as a whole or not at all. It keeps its mode, a link to it stays one, and what it was before lies beside it.
// What is not understood is not touched.
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
)

// Change is what an edit makes of a file.
type Change struct {
	Path          string // as it was named
	Before, After []byte

	target string      // the file itself, behind links
	mode   fs.FileMode // that it has, or is to have
	there  bool        // it is there already
}

// most is how long a configuration file may be, in bytes.
const most = 64 << 20

// Plan reads a file, "" where it is not there, and has edit change its text. A file that is made has the given mode.
func Plan(path string, mode fs.FileMode, edit func(text []byte) ([]byte, error)) (*Change, error) {
	c := &Change{Path: path, target: path, mode: mode}
	switch target, err := filepath.EvalSymlinks(path); {
	case err == nil:
		c.target, c.there = target, true
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("find %s: %w", path, err)
	default:
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s is a link to nothing: remove it, or make what it names", path)
		}
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	var err error
	if c.After, err = edit(bytes.Clone(c.Before)); err != nil {
		return nil, fmt.Errorf("%s is left as it is: %w", path, err)
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
		return fmt.Errorf("%s is no regular file", c.Path)
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

// Empty reports whether there is nothing to be done.
func (c *Change) Empty() bool { return bytes.Equal(c.Before, c.After) }

// Apply writes the file, and returns where its text of before is kept; "" where there was none. Where somebody else has
// changed the file meanwhile it writes nothing.
func (c *Change) Apply(now time.Time) (backup string, err error) {
	if c.there {
		text, err := os.ReadFile(c.target)
		if err != nil {
			return "", fmt.Errorf("read configuration: %w", err)
		}
		if !bytes.Equal(text, c.Before) {
			return "", fmt.Errorf("%s was changed by somebody else meanwhile: end what uses it, and try again", c.Path)
		}
		if backup, err = c.keep(now); err != nil {
			return "", err
		}
	} else if err := os.MkdirAll(filepath.Dir(c.target), 0o700); err != nil {
		return "", fmt.Errorf("make directory of configuration: %w", err)
	}
	temporary, err := c.write(c.target+".pwos-*", c.After)
	if err != nil {
		return backup, fmt.Errorf("write configuration: %w", err)
	}
	if err := os.Rename(temporary, c.target); err != nil {
		return backup, errors.Join(fmt.Errorf("write configuration: %w", err), os.Remove(temporary))
	}
	return backup, nil
}

// keep writes the text of before to a file of its own.
func (c *Change) keep(now time.Time) (string, error) {
	name, err := c.write(c.target+"."+now.Format("20060102-150405")+".*.bak", c.Before)
	if err != nil {
		return "", fmt.Errorf("keep a backup: %w", err)
	}
	return name, nil
}

// write makes a new file with a name of the pattern.
func (c *Change) write(pattern string, text []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(pattern), filepath.Base(pattern))
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(c.mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// around is how many unchanged lines a Diff shows before and after the changed ones.
const around = 2

// Diff shows the change: the lines that go, then those that come, with what stands around them.
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
