package scripts_test

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// unlockTerminal lets the other end of a pseudo-terminal be opened, and returns its name.
func unlockTerminal(ours *os.File) (name string, err error) {
	fd := int(ours.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return "", err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	return "/dev/pts/" + strconv.Itoa(n), err
}

// confines reports whether this system can keep a program from writing outside its directory.
func confines() bool {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	return errno == 0
}
