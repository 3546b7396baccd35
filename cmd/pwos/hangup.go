package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// untilHangup is ctx until the terminal goes away, which takes along what has it in use, unless it was started not to mind.
// The returned function lets go of the signal.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if signal.Ignored(syscall.SIGHUP) { // nohup
		return ctx, func() { cancel(nil) }
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	var waiter sync.WaitGroup
	waiter.Go(func() {
		select {
		case <-hangup:
			cancel(exitStatus(128 + syscall.SIGHUP))
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		waiter.Wait()
		signal.Stop(hangup)
	}
}
