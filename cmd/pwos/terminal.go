package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

// terminal is the pseudo-terminal of an agent. The agent's program has one end, wherever this process has a terminal as standard input,
// output or error. This process copies between the other end and its own terminal.
type terminal struct {
	app    *app
	own    *os.File // this process's terminal
	ours   *os.File // our end; closing it hangs up, and the program gets SIGHUP
	theirs *os.File // the program's end, open until the program has it: without an open end, reading ours fails
	// keyed means that what is typed is the program's: own is in raw mode while this process is in its foreground. Otherwise another
	// program of the pipeline may read it, and interrupts reach this process.
	keyed bool
	tell  func(syscall.Signal) // forwards a signal to the program
	log   *shownLog

	before  *term.State // of own; nil: not attached
	in      *cli.PatientFile
	out     terminalModes
	signals chan os.Signal
	over    chan struct{} // closed by detach
	shown   chan struct{} // closed when all output was shown
	workers sync.WaitGroup
	hangUp  func() error
}

// newTerminal creates a pseudo-terminal with the size and the settings of this process's terminal. It returns nil if standard input, output
// and error are none.
func newTerminal(a *app) (*terminal, error) {
	t := &terminal{app: a, keyed: a.StdinTerminal() && a.StdoutTerminal()}
	for _, file := range []*os.File{a.Stdout, a.Stderr, a.Stdin} {
		if t.own == nil && term.IsTerminal(int(file.Fd())) {
			t.own = file
		}
	}
	if t.own == nil {
		return nil, nil
	}
	var err error
	if t.ours, t.theirs, err = openPair(); err != nil {
		return nil, fmt.Errorf("make terminal: %w", err)
	}
	t.hangUp = sync.OnceValue(t.ours.Close)
	if err = t.settle(); err != nil {
		return nil, errors.Join(fmt.Errorf("make terminal: %w", err), t.hangUp(), t.theirs.Close())
	}
	return t, nil
}

// settle gives the pseudo-terminal the settings and the size of this process's terminal.
func (t *terminal) settle() error {
	raw, err := t.ours.SyscallConn() // Fd would make it blocking
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) { err = copySettings(int(t.own.Fd()), int(fd), !t.keyed) })
	if err = errors.Join(err, controlErr); err != nil {
		return err
	}
	return t.resize()
}

// replace puts another pseudo-terminal in the place of this process's, by its descriptor: one that the program can find by its name.
func (t *terminal) replace(fd int) error {
	err := unix.SetNonblock(fd, true)
	ours := os.NewFile(uintptr(fd), "terminal")
	if err = errors.Join(err, t.hangUp(), t.theirs.Close()); err != nil {
		return errors.Join(err, ours.Close())
	}
	t.ours, t.hangUp = ours, sync.OnceValue(ours.Close)
	return t.settle()
}

// resize copies the size of this process's terminal to the pseudo-terminal. The system notifies the program.
func (t *terminal) resize() error {
	size, err := unix.IoctlGetWinsize(int(t.own.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return fmt.Errorf("read size of terminal: %w", err)
	}
	raw, err := t.ours.SyscallConn()
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	controlErr := raw.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) })
	if err = errors.Join(err, controlErr); err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

// attach connects this process's terminal to the pseudo-terminal. The program must already have its end.
func (t *terminal) attach() (err error) {
	if err := ignoreClosed(t.theirs.Close()); err != nil { // replace closes it too
		return fmt.Errorf("connect terminal: %w", err)
	}
	t.out.to = t.own
	if t.in, err = cli.NewPatientFile(t.own); err != nil {
		return err
	}
	if t.before, err = term.GetState(int(t.own.Fd())); err != nil {
		return errors.Join(fmt.Errorf("read settings of terminal: %w", err), t.in.Close())
	}
	t.signals, t.over, t.shown = make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(t.signals, syscall.SIGWINCH, syscall.SIGCONT)
	t.takeBack() // also the size, which may have changed before signal.Notify
	t.workers.Go(func() {
		defer close(t.shown)
		_, _ = io.Copy(io.MultiWriter(&t.out, t.log), t.ours) // until the program's end is closed, or the output fails
		t.log.close()
		_ = t.hangUp()
	})
	if t.keyed {
		t.workers.Go(t.typing)
	}
	t.workers.Go(t.control)
	return nil
}

// suspendKey is Ctrl-Z.
const suspendKey = 0x1a

// typing copies what is typed to the program, until the pseudo-terminal ends or detach is called. In the background it reads nothing:
// what is typed is for others, and the system would stop this process.
func (t *terminal) typing() {
	keys := make([]byte, 4096)
	for t.in.Await() == nil {
		if !t.foreground() {
			select {
			case <-t.over:
			case <-time.After(glance):
			}
			continue
		}
		n, err := t.own.Read(keys)
		for typed := keys[:n]; len(typed) > 0; {
			head, rest, found := bytes.Cut(typed, []byte{suspendKey})
			if found && !t.suspends() {
				head = typed[:len(head)+1]
			} else if found {
				t.tell(syscall.SIGSTOP) // control sees it
			}
			if _, err := t.ours.Write(head); err != nil {
				return
			}
			typed = rest
		}
		if err != nil {
			return
		}
	}
}

// foreground reports whether this process may read from its terminal.
func (t *terminal) foreground() bool {
	group, err := unix.IoctlGetInt(int(t.own.Fd()), unix.TIOCGPGRP)
	return err != nil || group == syscall.Getpgrp() // with an error it does not control this process
}

// glance is a poll interval: the system does not report that a process which is not a child has stopped.
const glance = 200 * time.Millisecond

// control handles SIGWINCH and SIGCONT, and suspends this process when the program has stopped.
func (t *terminal) control() {
	every := time.NewTicker(glance)
	defer every.Stop()
	for {
		select {
		case sig, ok := <-t.signals:
			switch {
			case !ok:
				return
			case sig == syscall.SIGCONT: // the shell may have changed the terminal
				t.takeBack()
			default:
				_ = t.resize() // fails if the terminal is closed, which its reader reports
			}
		case <-every.C:
			if t.leaderStopped() {
				t.suspend(glance)
			}
		}
	}
}

// suspend restores the terminal and stops this process, as the program has stopped, until the shell continues it; then it continues the
// program. Without a shell the system ignores the stop, and the program continues after settle.
func (t *terminal) suspend(settle time.Duration) {
	t.restore()
	_ = syscall.Kill(0, syscall.SIGTSTP)
	late := time.NewTimer(settle)
	defer late.Stop()
	for waiting := true; waiting; {
		select {
		case sig, ok := <-t.signals:
			waiting = ok && sig != syscall.SIGCONT
		case <-late.C:
			waiting = false
		}
	}
	t.takeBack()
	t.tell(syscall.SIGCONT)
}

// takeBack sets this process's terminal to raw mode, if that is the program's. It ignores errors: the reader reports a closed terminal.
func (t *terminal) takeBack() {
	if t.keyed && t.foreground() {
		_, _ = term.MakeRaw(int(t.own.Fd()))
	}
	_ = t.resize()
}

// restore undoes takeBack.
func (t *terminal) restore() {
	if t.keyed && t.foreground() { // in the background the system would stop this process
		_ = term.Restore(int(t.own.Fd()), t.before) // fails if the terminal is closed
	}
}

// lastOutput bounds the wait for output after the program's end, since another process may keep the terminal open.
const lastOutput = time.Second

// detach restores this process's terminal and hangs up. A program that still runs gets SIGHUP.
func (t *terminal) detach() error {
	if t.before == nil { // it was never attached
		return errors.Join(ignoreClosed(t.hangUp()), ignoreClosed(t.theirs.Close()))
	}
	_ = t.in.SetReadDeadline(time.Time{}) // stops the copying of keys
	err := ignoreClosed(t.hangUp())
	signal.Stop(t.signals)
	close(t.signals)
	close(t.over)
	t.workers.Wait()
	_ = t.out.undo() // fails if the terminal is closed
	if t.keyed && t.foreground() {
		t.drain()
	}
	t.restore()
	return errors.Join(err, t.in.Close())
}

// finish waits until the last output of an ended program was shown, at most lastOutput.
func (t *terminal) finish() {
	late := time.NewTimer(lastOutput)
	defer late.Stop()
	select {
	case <-t.shown:
	case <-late.C:
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
