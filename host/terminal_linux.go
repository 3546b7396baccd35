package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// takeTerminal makes the terminal among standard input, output and error, if there is one, the controlling terminal of this process,
// which leads a session. A terminal of another session is refused, also for user 0, and so is a second one: the program could type
// into it.
func takeTerminal() error {
	taken := false
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
			continue // no terminal
		}
		if !taken {
			const steal = 0 // never
			if err := unix.IoctlSetInt(fd, unix.TIOCSCTTY, steal); err != nil {
				return fmt.Errorf("take terminal: %w", err)
			}
			taken = true
		}
		if session, err := unix.IoctlGetInt(fd, unix.TIOCGSID); err != nil || session != os.Getpid() {
			return fmt.Errorf("take terminal: descriptor %d is another terminal: %w", fd, errors.Join(err, unix.EPERM))
		}
	}
	return nil
}
