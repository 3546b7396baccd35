package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/schema"
)

// errLocked: some daemon holds the instance lock.
var errLocked = errors.New("a daemon is starting, or has not ended yet")

// Shutdown asks the kernel to end and waits until it has: it has closed this connection and given back its instance
// lock, which is the last thing that it does. It returns what Do returns, or the cause of ctx's end.
func (c *Client) Shutdown(ctx context.Context) (schema.Message, error) {
	answer, err := c.Call(ctx, schema.KindCommand, "Syscall.Shutdown", []byte("{}"))
	if err != nil {
		return answer, err
	}
	select {
	case <-c.quit: // the connection has ended
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	}
	_, err = backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, unlocked(c.places.Lock) },
		backoff.WithBackOff(pace()), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return answer, fmt.Errorf("wait for the kernel's end: %w", err)
	}
	return answer, nil
}

// unlocked returns errLocked while somebody holds the instance lock. It looks with a shared lock, which it gives back at
// once.
func unlocked(path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return backoff.Permanent(err)
	}
	defer lockfile.Release(file) // nothing was written
	err = lockfile.TryShared(file)
	switch {
	case errors.Is(err, lockfile.ErrHeld):
		return errLocked
	case err != nil:
		return backoff.Permanent(err)
	}
	return nil
}
