package unixsock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// guardPause lies between two attempts at a guard that another process holds.
const guardPause = 5 * time.Millisecond

// guard keeps every other Listen off the directory from the first look at a socket path until a socket is there. The
// instance lock does that already, unless its file is deleted while two daemons start; the directory itself is not so
// easily deleted. A file system that cannot lock a directory (NFS) leaves it at the instance lock.
func guard(ctx context.Context, dir string) (release func(), err error) {
	file, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("guard directory: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return func() { _ = file.Close() }, nil // nothing was written that could be lost
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("guard directory: %w", errors.Join(context.Cause(ctx), file.Close()))
		case <-time.After(guardPause):
		}
	}
}
