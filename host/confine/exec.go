package confine

import "time"

// MaxArgs bounds the arguments of an Exec, in bytes, each with its end and its place in the list.
const MaxArgs = 128 << 10

// Exec is a program that a process of a confined program has asked the system to execute. It is what was requested: with memory that
// is shared, another thread can change path and arguments before the system reads them.
type Exec struct {
	Time    time.Time
	PID     int    // process, and thread, that asks, as this process numbers them
	Thread  int    //
	Parent  int    // of the process
	Program string // what the process has executed until now; "": unknown
	// Path is absolute, but not free of symbolic links. A program without a path is what the system calls it: "/memfd:name (deleted)".
	Path string
	Dir  string // working directory
	Args []string
	Cut  bool // Args lacks the end, since there are more than MaxArgs
	// Missing says that nothing was at the path, as in each directory of PATH but the last that a search tries.
	Missing bool
	// Hidden says that the process could not be read, since it does not let others of its user do that. Path, Dir and Args are empty.
	Hidden bool
	// First says that it is the program itself, with which the agent begins.
	First bool
}
