package record

import (
	"fmt"
	"time"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Boot journals a command of the kernel itself before there is a kernel: state decides and applies it. It is on disk when
// Boot returns, also on a full disk while the journal's reserve lasts. If it fails with another error than
// journal.ErrStopped, nothing was done.
func Boot(log *journal.Log, state kernel.Domain, origin string, tick int64, step schema.Request) error {
	row := step.Row
	data, err := schema.Marshal(step.Input)
	if err != nil {
		return fmt.Errorf("note %s: %w", row.Type, err)
	}
	cause := kernel.Cause{Conn: "kernel", Origin: origin}
	call := kernel.StepOf(&cause, step, data, schema.NewStamper().NewID(), time.Now())
	call.Tick = tick
	begun := time.Now()
	result, err := state.Decide(&call)
	if err != nil {
		return fmt.Errorf("note %s: %w", row.Type, err)
	}
	call.Data, call.Proof.LatencyUS = result.Data, kernel.Microseconds(time.Since(begun))
	log.Append(new(Encoder).Entry(&call, 0))
	if err := log.FlushFromReserve(); err != nil {
		return fmt.Errorf("note %s: %w", row.Type, err)
	}
	if _, err := log.Sync(); err != nil {
		return fmt.Errorf("note %s: %w", row.Type, err)
	}
	state.Apply(&call)
	return nil
}

// Vouch journals that a line of the journal is rewritten, before there is a kernel. The entry is on disk when Vouch
// returns.
func Vouch(log *journal.Log, origin string, tick int64, in *schema.AuditRedactedInput) (seq uint64, err error) {
	step := schema.AuditRedacted.With(in)
	data, err := schema.Marshal(in)
	if err != nil {
		return 0, fmt.Errorf("note %s: %w", step.Row.Type, err)
	}
	cause := kernel.Cause{Conn: "kernel", Origin: origin}
	call := kernel.StepOf(&cause, step, data, schema.NewStamper().NewID(), time.Now())
	call.Tick, call.Data = tick, data
	seq = log.Append(new(Encoder).Entry(&call, 0))
	if err = log.FlushFromReserve(); err == nil {
		_, err = log.Sync()
	}
	if err != nil {
		return 0, fmt.Errorf("note %s: %w", step.Row.Type, err)
	}
	return seq, nil
}
