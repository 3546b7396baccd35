package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/schema/fault"
)

// home is what a person sees who types nothing but pwos: whether a kernel runs and where, and what to try.
func (a *app) home(ctx context.Context) error {
	s, err := a.inspect(ctx)
	switch {
	case err == nil:
		if err := a.printStatus(s); err != nil {
			return err
		}
	case errors.Is(err, fault.DaemonNotRunning):
		a.say("%v; the first call starts one", err)
	default:
		return err
	}
	if a.wantsJSON() {
		return nil
	}
	_, err = fmt.Fprintf(a.stdout, `
try:
  pwos describe                         # what the kernel can do
  pwos call Syscall.Echo message=hello  # one message, one answer
  pwos demo                             # a whole conversation, explained
`)
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
