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

// suspends reports whether the key for a stop is to stop the program, but will not: the system does not stop the group of a session's
// leader, whose parent is in another session, unless it handles the signal itself.
func (t *terminal) suspends() bool {
	raw, err := t.ours.SyscallConn()
	if err != nil {
		return false
	}
	var settings *unix.Termios
	var group, leader int
	controlErr := raw.Control(func(fd uintptr) {
		if settings, err = unix.IoctlGetTermios(int(fd), unix.TCGETS); err != nil {
			return
		}
		if group, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil {
			leader, err = unix.IoctlGetInt(int(fd), unix.TIOCGSID)
		}
	})
	if errors.Join(err, controlErr) != nil || settings.Lflag&unix.ISIG == 0 || settings.Cc[unix.VSUSP] != suspendKey || group != leader {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(leader) + "/status")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "SigIgn" && string(name) != "SigCgt" {
			continue
		}
		mask, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
		if err != nil || mask&(1<<(unix.SIGTSTP-1)) != 0 {
			return false
		}
	}
	return true
}

// leaderStopped reports whether the leader of the session at the program's end is stopped.
func (t *terminal) leaderStopped() bool {
	var pid int
	raw, err := t.ours.SyscallConn()
	if err != nil {
		return false
	}
	controlErr := raw.Control(func(fd uintptr) { pid, err = unix.IoctlGetInt(int(fd), unix.TIOCGSID) })
	if errors.Join(err, controlErr) != nil || pid <= 0 {
		return false // the session has ended, or does not exist yet
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return bytes.HasPrefix(state, []byte("T"))
}
