package main

import (
	"context"
	"errors"
	"syscall"
)

// stream copies stdin to the kernel and its answers to stdout until both ends are done (BRIDGE 4.4).
func (a *app) stream(ctx context.Context) (err error) {
	ctx, cancel := a.bound(ctx, 0)
	defer cancel()
	in, err := newPatientFile(a.stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tally, err := c.Stream(ctx, in, a.stdout)
	if tally.Errors > 0 && (err == nil || errors.Is(err, syscall.EPIPE)) {
		return errSeen
	}
	return err
}
