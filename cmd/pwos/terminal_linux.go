package main

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openPair creates a pseudo-terminal: our end, which is non-blocking, and the program's.
func openPair() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var number int
	raw, err := ours.SyscallConn() // Fd would make it blocking
	if err == nil {
		controlErr := raw.Control(func(fd uintptr) {
			if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
				number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
		})
		err = errors.Join(err, controlErr)
	}
	if err == nil {
		theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}

// leader returns the PID of the leader of the session at the program's end, and whether it is stopped.
func (t *terminal) leader() (pid int, stopped bool) {
	raw, err := t.ours.SyscallConn()
	if err != nil {
		return 0, false
	}
	controlErr := raw.Control(func(fd uintptr) { pid, err = unix.IoctlGetInt(int(fd), unix.TIOCGSID) })
	if errors.Join(err, controlErr) != nil || pid <= 0 {
		return 0, false // the session has ended, or does not exist yet
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	_, state, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return pid, bytes.HasPrefix(state, []byte("T"))
}
