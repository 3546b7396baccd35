package host

import (
	"errors"
	"fmt"
)

// The classes of a start that failed. Errors of Start wrap one of them where the class is known.
var (
	// ErrCommand says that the command cannot be meant: no program named, NUL in a word, a bad setting.
	ErrCommand = errors.New("command is not valid")
	// ErrNotFound says that there is no such program, or no such working directory.
	ErrNotFound = errors.New("not found")
	// ErrNotExecutable says that the file is no program: a directory, no execute permission, or no known format.
	ErrNotExecutable = errors.New("not executable")
	// ErrInterpreter says that the program is there, but the interpreter or loader that it names is not.
	ErrInterpreter = errors.New("interpreter is missing")
	// ErrTooLong says that argv with the environment is more than the system takes.
	ErrTooLong = errors.New("arguments are too long")
	// ErrSandbox says that a strict sandbox cannot be enforced here.
	ErrSandbox = errors.New("sandbox cannot be enforced")
	// ErrResources says that the system is out of processes, descriptors or memory.
	ErrResources = errors.New("out of system resources")
	// ErrUnsupported says that the system lacks what hosting stands on.
	ErrUnsupported = errors.New("not supported by this system")
	// ErrClosed says that the host was closed.
	ErrClosed = errors.New("host is closed")
)

// StartError is a program that could not be started.
type StartError struct {
	// Program is argv[0] as it was asked for.
	Program string
	// Stage is where it failed: "command", "find", "log", "fork", "limits", "terminal", "mark", "sandbox", "exec".
	Stage string
	// Err wraps one of the classes, or is the system's error.
	Err error
}

// Error names the program, the stage and the cause.
func (e *StartError) Error() string {
	if e.Stage == "find" { // which the cause says by itself
		return fmt.Sprintf("start %q: %v", e.Program, e.Err)
	}
	return fmt.Sprintf("start %q: %s: %v", e.Program, e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }
