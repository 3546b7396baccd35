package actors

import (
	"fmt"
	"time"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Boot journals a command of the kernel's own before there is a kernel: decided and applied by state, on disk when it
// returns, on a full disk too as far as the journal's reserve lasts. Where it fails otherwise than with journal.ErrStopped,
// nothing was done.
func Boot(log *journal.Log, state kernel.Domain, origin string, tick int64, step schema.Request) error {
	row := step.Row
	data, err := schema.Marshal(step.Input)
	if err != nil {
		return fmt.Errorf("note %s: %w", row.Type, err)
	}
	cause := kernel.Call{Caller: kernel.Caller{Conn: "kernel"}, Origin: origin}
	call := stepCall(new(ids), &cause, step, row, data)
	call.Tick = tick
	begun := time.Now()
	result, err := state.Decide(&call)
	if err != nil {
		return fmt.Errorf("note %s: %w", row.Type, err)
	}
	call.Data, call.Proof.LatencyUS = result.Data, microseconds(time.Since(begun))
	log.Append(new(recorder).entry(&call, 0))
	if err := log.FlushFromReserve(); err != nil {
		return fmt.Errorf("note %s: %w", row.Type, err)
	}
	if _, err := log.Sync(); err != nil {
		return fmt.Errorf("note %s: %w", row.Type, err)
	}
	state.Apply(&call)
	return nil
}
