package main

import (
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

// copySettings gives a terminal the settings of another, without processing of output if plain.
func copySettings(from, to int, plain bool) error {
	settings, err := unix.IoctlGetTermios(from, unix.TCGETS)
	if err != nil {
		return err
	}
	if plain {
		settings.Oflag &^= unix.OPOST
	}
	return unix.IoctlSetTermios(to, unix.TCSETS, settings)
}
