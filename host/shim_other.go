//go:build unix && !linux

package host

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// bind checks that the daemon is alive. These systems have no common way to be notified of its death; the guard handles
// that.
func (o order) bind() error {
	if parent := os.Getppid(); parent != o.parent {
		return fmt.Errorf("parent is %d, not the daemon: %w", parent, unix.ESRCH)
	}
	// Only descriptors within the limit can be open; many systems have no other way to list them.
	const most = 4096
	for fd := o.status; fd < most; fd++ {
		unix.CloseOnExec(fd)
	}
	return nil
}

func (order) wear() error { return nil }

func (order) replace() error { return nil }

func (order) enter() error { return nil }

func (order) restrict() error { return nil }

// execute becomes the program.
func (o order) execute() (string, error) {
	return "exec", syscall.Exec(o.program, o.argv, o.env)
}

// limit sets the resource limits.
func (o order) limit() error {
	for resource, value := range map[int]int64{
		unix.RLIMIT_CPU: o.cpu, unix.RLIMIT_NOFILE: o.files, unix.RLIMIT_DATA: o.memory,
	} {
		if value == 0 {
			continue
		}
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil {
			return fmt.Errorf("read limit %d: %w", resource, err)
		}
		set(&l.Cur, value)
		set(&l.Max, value)
		if err := unix.Setrlimit(resource, &l); err != nil {
			return fmt.Errorf("set limit %d to %d: %w", resource, value, err)
		}
	}
	return nil
}

// set lowers a value whose type differs between systems.
func set[T ~int64 | ~uint64](to *T, value int64) {
	if *to < 0 || *to > T(value) {
		*to = T(value)
	}
}
