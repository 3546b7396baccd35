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
	defer close(o.settled)
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
			o.settle()
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
		says[0] = takesTerminal
	}
	_, _, err := conn.WriteMsgUnix(says, unix.UnixRights(fds...), nil)
	return err
}

// takesTerminal says to the kernel that it may open the program's terminal itself, where the program has terminals of its own.
const takesTerminal = 1

// settle waits until the kernel passes on the terminal that it has opened, or begin or close ends the wait. If the terminal cannot be set
// up, it is not confirmed, and the program does not start.
func (o *ownStdio) settle() {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := o.kernel.ReadMsgUnix(make([]byte, 1), control)
	if err != nil || n == 0 {
		return
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return
	}
	unix.CloseOnExec(fds[0])
	if err := o.terminal.replace(fds[0]); err == nil {
		_, _ = o.kernel.Write([]byte{takesTerminal}) // fails if the kernel has ended, which others see
	}
}

// unwait ends the wait of settle.
func (o *ownStdio) unwait() error {
	if err := o.kernel.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return fmt.Errorf("hand over standard input and output: %w", err)
	}
	<-o.settled
	return nil
}
