package tool

import (
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// badModule refuses a module that is not valid, or needs what there is not.
func badModule(format string, args ...any) *fault.Fault {
	return fault.ToolBadModule.New("the module cannot be run: "+format, args...)
}

// cannotStart says why a program did not start.
func cannotStart(format string, args ...any) *fault.Fault {
	return fault.ToolCannotStart.New("the program cannot be started: "+format, args...)
}

// failed says how a tool ended: with another exit code than 0, or stopped by a limit.
func failed(format string, args ...any) *fault.Fault {
	return fault.ToolFailed.New("the tool failed: "+format, args...)
}

func overdue(limit time.Duration) *fault.Fault {
	return fault.ToolTimeout.New("the time is over: %s", limit)
}

func tooLong(limit int64) *fault.Fault {
	return fault.ToolLimit.New("the output is too long: more than %d bytes", limit)
}

func notJSON() *fault.Fault { return fault.ToolBadOutput.New("the output is not one JSON value") }
