package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/peercred"
)

// serve hands the descriptors over to the kernel, once.
func (o *ownStdio) serve() {
	defer close(o.unheard)
	taken := sync.OnceFunc(func() { close(o.taken) })
	defer taken()
	for {
		conn, err := o.listener.AcceptUnix()
		if err != nil {
			return // close was called
		}
		if err := o.give(conn); err == nil {
			o.kernel = conn
			_ = o.listener.Close() // and removes the socket
			taken()
			o.listen()
			return
		}
		_ = conn.Close() // not the kernel
	}
}

// give sends the descriptors, unless another user than the kernel's asks for them.
func (o *ownStdio) give(conn *net.UnixConn) error {
	if uid, err := peercred.User(conn); err != nil || uid != 0 && uid != o.owner {
		return errors.Join(err, os.ErrPermission)
	}
	var fds []int
	for _, file := range o.files {
		fds = append(fds, int(file.Fd()))
	}
	says := []byte{0}
	if o.terminal != nil {
		says[0] |= takesTerminal
	}
	if o.shows {
		says[0] |= takesLog
	}
	_, _, err := conn.WriteMsgUnix(says, unix.UnixRights(fds...), nil)
	return err
}

// What this process says to the kernel that it takes. The kernel says it again with each descriptor that it passes on.
const (
	takesTerminal = 1 << iota // a terminal that the kernel opens, where the program has terminals of its own
	takesLog                  // a pipe to the agent's log, for what is shown
)

// listen takes what the kernel passes on before the program starts, and hears when the program stops, until close. What cannot be
// set up is not confirmed, and the program does not start.
func (o *ownStdio) listen() {
	for {
		what, fd, err := o.receive()
		switch {
		case err != nil:
			return
		case fd < 0:
			select {
			case o.stops <- struct{}{}:
			default: // this process will stop anyway
			}
			continue
		}
		if err := o.take(what, fd); err != nil {
			return
		}
		_, _ = o.kernel.Write([]byte{what}) // fails if the kernel has ended, which others see
	}
}

// take sets up a descriptor that the kernel passes on.
func (o *ownStdio) take(what byte, fd int) error {
	o.taking.Lock()
	defer o.taking.Unlock()
	switch {
	case what == takesTerminal && o.terminal != nil:
		return o.terminal.replace(fd)
	case what == takesLog && o.shows:
		return o.shown.open(fd)
	}
	return errors.Join(errors.New("the kernel passes on what was not asked for"), unix.Close(fd))
}

// receive receives a descriptor from the kernel, which says what it is; -1: the kernel says that the program has stopped.
func (o *ownStdio) receive() (what byte, fd int, err error) {
	says, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	told, n, _, _, err := o.kernel.ReadMsgUnix(says, control)
	if err != nil || told == 0 {
		return 0, 0, errors.Join(err, net.ErrClosed)
	}
	if n == 0 {
		return says[0], -1, nil
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return 0, 0, errors.Join(err, net.ErrClosed)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, 0, errors.Join(err, net.ErrClosed)
	}
	unix.CloseOnExec(fds[0])
	return says[0], fds[0], nil
}

// unlisten ends listen.
func (o *ownStdio) unlisten() error {
	if err := o.kernel.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return fmt.Errorf("hand over standard input and output: %w", err)
	}
	<-o.unheard
	return nil
}
