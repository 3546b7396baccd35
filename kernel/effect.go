package kernel

import (
	"bytes"

	"github.com/promptware-os/pwos/schema"
)

// Work is what a call needs done outside the kernel. The shell begins it once the entry of the call is on disk, so that
// nothing is ever found in the world that the journal knows nothing of, and keeps the answer back until it is done. What
// comes of it is journaled by commands of the kernel's own; a replay does nothing of the kind.
type Work struct {
	Start *Program // a program that is to be started
	Stop  []int64  // processes of whose programs nothing may be left
	Await int64    // a process whose program may be starting: that it has begun, or failed to, is waited for; 0: none

	// Run is what the runner of the call's syscall is to do; nil: nothing. The entry of the call is then the intent alone.
	// What comes of it is the input of the syscall's Outcome, and the answer to that is the answer to the call.
	Run any
}

// begun is the outcome of an intent, which nobody but the journal sees.
var begun = []byte(`{"begun":true}`)

// Begin is the Result of a call that has nothing decided but that its runner is to do what do says.
func Begin(do any) Result { return Result{Data: begun, Effect: &Work{Run: do}} }

// End answers the end of an effect that has nothing to add to what its runner returned.
func End(_ *Call, in *schema.EffectEnd) (schema.Value, error) {
	data, err := in.Result()
	if err != nil {
		return nil, err
	}
	return bytes.Clone(data), nil
}

// Program is what a process runs, and what its earlier ends count for.
type Program struct {
	PID      int64
	AgentID  string
	Origin   string
	Spec     schema.Program
	Restarts int64
	Faults   int64 // in a row
	Quick    int64 // early ends in a row
}
