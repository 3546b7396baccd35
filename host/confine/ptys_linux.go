package confine

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// mostPtys bounds the pseudo-terminals of one program: the machine's number is bounded too, and what it reserves is for the operator only.
const mostPtys = "256"

// addPtys mounts a devpts, in which no terminal of another program is, and its multiplexer.
func addPtys() error {
	fs, err := unix.Fsopen("devpts", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("devpts: %w", err)
	}
	defer closeFD(fs)
	for _, option := range [][2]string{{"ptmxmode", "0666"}, {"mode", "0600"}, {"max", mostPtys}} {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return fmt.Errorf("devpts: %w", err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return fmt.Errorf("devpts: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return fmt.Errorf("devpts: %w", err)
	}
	if err := attach(fd, ptysDir); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(ptysMaster, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil // a link to it, or a machine that has only that in ptysDir
	}
	master, err := unix.OpenTree(fd, "ptmx", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("multiplexer: %w", err)
	}
	return attach(master, ptysMaster)
}

// OpenTerminal opens one of the program's pseudo-terminals, puts the program's end in the place of each terminal among standard input,
// output and error, and keeps the other for HandOver. It must be called as the program's user, who owns the terminal, after Enter.
func (p *Plan) OpenTerminal() error {
	master, theirs, err := openPty()
	if err != nil {
		return fmt.Errorf("open terminal: %w", err)
	}
	p.hand = append(p.hand, master)
	defer closeFD(theirs)
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
			continue // no terminal
		}
		if err := unix.Dup3(theirs, fd, 0); err != nil {
			return fmt.Errorf("open terminal: %w", err)
		}
	}
	return nil
}

// openPty opens a pseudo-terminal of addPtys: the host's end, and the program's.
func openPty() (master, theirs int, err error) {
	if master, err = unix.Open(ptysDir+"/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err != nil {
		return -1, -1, err
	}
	number := 0
	if err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err == nil {
		number, err = unix.IoctlGetInt(master, unix.TIOCGPTN)
	}
	if err == nil {
		theirs, err = unix.Open(ptysDir+"/"+strconv.Itoa(number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		closeFD(master)
		return -1, -1, err
	}
	return master, theirs, nil
}

// canOpenPty reports whether a pseudo-terminal of addPtys can be opened.
func canOpenPty() bool {
	master, theirs, err := openPty()
	if err != nil {
		return false
	}
	closeFD(theirs)
	closeFD(master)
	return true
}
