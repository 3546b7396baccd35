package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// find returns the absolute path of a command's program. os/exec's LookPath would use the daemon's PATH and directory
// instead of the program's.
func (c Command) find(environ []string) (string, error) {
	info, err := os.Stat(c.Dir)
	if err != nil {
		return "", fmt.Errorf("working directory: %w", class(err))
	}
	if !info.IsDir() {
		return "", fmt.Errorf("working directory %s: %w: not a directory", c.Dir, ErrNotFound)
	}
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(c.Dir, name)
		}
		return name, executable(name)
	}
	var found error = notInPath(name)
	for _, dir := range filepath.SplitList(value(environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(c.Dir, dir)
		}
		path := filepath.Join(dir, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		// An existing file that cannot be executed is a better error than missing others.
		if !errors.Is(err, ErrNotFound) && errors.Is(found, ErrNotFound) {
			found = err
		}
	}
	return "", found
}

// executed returns the path by which the program at an absolute path is executed, in the working directory. A script gets it as its name,
// so a path is what the command has.
func (c Command) executed(path string) string {
	if name := c.Argv[0]; strings.Contains(name, "/") {
		return name
	}
	return path
}

// notInPath says that no directory of PATH has the program.
type notInPath string

func (p notInPath) Error() string { return string(p) + " is not in PATH" }

func (notInPath) Unwrap() error { return ErrNotFound }

// executable returns an error, with a precise reason, for a file that execve would refuse.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return class(err)
	case info.IsDir():
		return fmt.Errorf("%s: %w: a directory", path, ErrNotExecutable)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s: %w: no execute permission", path, ErrNotExecutable)
	}
	return nil
}

// value returns the value of an environment variable in a list, or "".
func value(environ []string, name string) string {
	for _, pair := range environ {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			return v
		}
	}
	return ""
}

// class adds the class of the system's error to it.
func class(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%w: %w", ErrNotExecutable, err)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%w: %w", ErrTooLong, err)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%w: %w", ErrResources, err)
	}
	return err
}
