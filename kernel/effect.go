package kernel

import "github.com/promptware-os/pwos/schema"

// Effect is what a call needs done outside the kernel. The shell begins it once the entry of the call is on disk, so that
// nothing is ever found in the world that the journal knows nothing of, and keeps the answer back until it is done. What
// comes of it is journaled by commands of the kernel's own; a replay does nothing of the kind.
type Effect struct {
	Start *Program // a program that is to be started
	Stop  []int64  // processes of whose programs nothing may be left
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
