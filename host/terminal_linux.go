package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Major numbers of the programs' ends of pseudo-terminals.
const (
	firstPTS = 136
	lastPTS  = 143
)

// openTerminal opens the program's end of a pseudo-terminal. It refuses other files.
func openTerminal(path string) (*os.File, error) {
	tty, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var info unix.Stat_t
	err = unix.Fstat(int(tty.Fd()), &info)
	if major := unix.Major(uint64(info.Rdev)); err == nil && (info.Mode&unix.S_IFMT != unix.S_IFCHR || major < firstPTS || major > lastPTS) {
		err = fmt.Errorf("%w: %s is not a pseudo-terminal", ErrCommand, path)
	}
	if err != nil {
		return nil, errors.Join(err, tty.Close())
	}
	return tty, nil
}

// takeTerminal makes standard input, if it is a terminal, the controlling terminal of this process, which leads a session.
// The host passes only terminals of agents. A terminal of another session is refused, also for user 0.
func takeTerminal() error {
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err != nil {
		return nil // no terminal
	}
	const steal = 0 // never
	if err := unix.IoctlSetInt(0, unix.TIOCSCTTY, steal); err != nil {
		return fmt.Errorf("take terminal: %w", err)
	}
	return nil
}
