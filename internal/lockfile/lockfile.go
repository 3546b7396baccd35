//go:build unix

// Package lockfile locks open files with flock(2). No other package locks files.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another open file, of this process or another, has the lock.
var ErrHeld = errors.New("lock is held")

// pause is the time between two attempts of Wait: flock(2) takes no deadline.
const pause = 5 * time.Millisecond

// Try takes the exclusive lock on f without waiting. It returns ErrHeld if another open file has it. The lock ends with
// Release, or with the process.
func Try(f *os.File) error { return lock(f, unix.LOCK_EX) }

// TryShared takes a lock that excludes only the locks of Try and Wait.
func TryShared(f *os.File) error { return lock(f, unix.LOCK_SH) }

// Wait is Try, repeated until the lock is free or ctx ends. Its error then wraps ErrHeld and the cause.
func Wait(ctx context.Context, f *os.File) error {
	for {
		err := Try(f)
		if !errors.Is(err, ErrHeld) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// moment bounds the wait of Take.
const moment = time.Second

// Take is Try, but waits up to moment for a lock that is about to be released: a killed process has it until the system has
// closed its files, a child that this process has forked until it executes its program, and a client that checks whether a
// daemon runs until it has done so.
func Take(f *os.File) error {
	ctx, cancel := context.WithTimeout(context.Background(), moment)
	defer cancel()
	return Wait(ctx, f)
}

// Release releases the lock and closes f. Closing f is not sufficient: a forked child shares the open file, and the lock,
// until it executes its program.
func Release(f *os.File) error {
	_, err := f.Stat() // fails if f is closed, unlike Fd
	if err == nil {
		err = flock(f, unix.LOCK_UN)
	}
	return errors.Join(err, f.Close())
}

func lock(f *os.File, how int) error {
	err := flock(f, how|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrHeld
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
