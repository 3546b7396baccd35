package tool

import (
	"errors"
	"fmt"
)

// Why a call came to nothing. Call also returns the errors of uri and rootfs, and the cause of its context.
var (
	// ErrNotCallable: the file is neither a module nor executable.
	ErrNotCallable = errors.New("it is no WebAssembly module, and no executable file")
	// ErrModule: the module is not valid, or needs what there is not.
	ErrModule = errors.New("the module cannot be run")
	// ErrStart: the program could not be started.
	ErrStart = errors.New("the program cannot be started")
	// ErrNoPrograms: the file is executable, and programs are not run here.
	ErrNoPrograms = errors.New("programs are not run here: tools.programs = true in the configuration allows them")
	// ErrTime: it did not end in time.
	ErrTime = errors.New("the time is over")
	// ErrOutput: it wrote more than it may.
	ErrOutput = errors.New("the output is too long")
	// ErrNotJSON: what it wrote is not one strict JSON value.
	ErrNotJSON = errors.New("the output is not one JSON value")
	// ErrFailed: it ended with another exit code than 0, or was stopped by a limit.
	ErrFailed = errors.New("the tool failed")
	// ErrInput: the input is not one strict JSON value.
	ErrInput = errors.New("the input is not one JSON value")
)

// ToolError is a tool that ran and whose call came to nothing.
type ToolError struct {
	URI    string
	Digest string // for the journal, as of a call that succeeded
	Err    error
	// Said is the end of what the tool wrote to its standard error: for the log, and for who may read it.
	Said string
}

// Error returns the tool and what went wrong.
func (e *ToolError) Error() string { return fmt.Sprintf("call %s: %v", e.URI, e.Err) }

// Unwrap returns what went wrong.
func (e *ToolError) Unwrap() error { return e.Err }
