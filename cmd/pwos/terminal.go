package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

// terminal is the pseudo-terminal of an agent. The agent's program has one end. This process copies between the other end
// and its own terminal, which is in raw mode, so that every key reaches the program.
type terminal struct {
	app    *app
	name   string   // path of the program's end
	ours   *os.File // our end; closing it hangs up, and the program gets SIGHUP
	theirs *os.File // the program's end, open until the program has it: without an open end, reading ours fails

	before  *term.State
	in      *cli.PatientFile
	out     terminalModes
	signals chan os.Signal
	shown   chan struct{} // closed when all output was shown
	workers sync.WaitGroup
	hangUp  func() error
}

// newTerminal creates a pseudo-terminal with the size of this process's terminal.
func newTerminal(a *app) (*terminal, error) {
	ours, theirs, err := openPair()
	if err != nil {
		return nil, fmt.Errorf("make terminal: %w", err)
	}
	t := &terminal{app: a, name: theirs.Name(), ours: ours, theirs: theirs, hangUp: sync.OnceValue(ours.Close)}
	if err := t.resize(); err != nil {
		return nil, errors.Join(err, t.hangUp(), theirs.Close())
	}
	return t, nil
}

// resize copies the size of this process's terminal to the pseudo-terminal. The system notifies the program.
func (t *terminal) resize() error {
	size, err := unix.IoctlGetWinsize(int(t.app.Stdin.Fd()), unix.TIOCGWINSZ)
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
	if err := t.theirs.Close(); err != nil {
		return fmt.Errorf("connect terminal: %w", err)
	}
	t.out.to = t.app.Stdout
	if t.in, err = cli.NewPatientFile(t.app.Stdin); err != nil {
		return err
	}
	if t.before, err = term.MakeRaw(int(t.app.Stdin.Fd())); err != nil {
		return errors.Join(fmt.Errorf("set terminal to raw mode: %w", err), t.in.Close())
	}
	t.signals, t.shown = make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(t.signals, syscall.SIGWINCH, syscall.SIGCONT)
	_ = t.resize() // the size may have changed before signal.Notify
	t.workers.Go(func() {
		defer close(t.shown)
		_, _ = io.Copy(&t.out, t.ours) // until the program's end is closed, or the output fails
		_ = t.hangUp()
	})
	t.workers.Go(func() { _, _ = io.Copy(t.ours, t.in) }) // ends with the pseudo-terminal, or in detach
	t.workers.Go(t.control)
	return nil
}

// control handles SIGWINCH and SIGCONT, and suspends this process when the program has stopped.
func (t *terminal) control() {
	const glance = 200 * time.Millisecond // poll interval: the system does not report that a process which is not a child has stopped
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
			if leader, stopped := t.leader(); stopped {
				t.suspend(leader, glance)
			}
		}
	}
}

// suspend restores the terminal and stops this process, as the program has stopped, until the shell continues it; then it continues the
// program. Without a shell the system ignores the stop, and the program continues after settle.
func (t *terminal) suspend(leader int, settle time.Duration) {
	_ = term.Restore(int(t.app.Stdin.Fd()), t.before)
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
	_ = syscall.Kill(-leader, syscall.SIGCONT)
}

// takeBack sets this process's terminal to raw mode again. It ignores errors: the reader reports a closed terminal.
func (t *terminal) takeBack() {
	_, _ = term.MakeRaw(int(t.app.Stdin.Fd()))
	_ = t.resize()
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
	t.workers.Wait()
	_ = t.out.undo() // fails if the terminal is closed
	t.drain()
	if restoreErr := term.Restore(int(t.app.Stdin.Fd()), t.before); restoreErr != nil {
		err = errors.Join(err, fmt.Errorf("restore terminal: %w", restoreErr))
	}
	return errors.Join(err, t.in.Close())
}

// lastAnswer bounds the wait for a terminal's answers. One that answers nothing costs this much.
const lastAnswer = time.Second

// drain reads the terminal's answers to what an ended program has asked, such as ESC [ 6 n, which the shell would take for
// keys. A terminal answers in the order of the questions, so drain asks a last one, and reads up to its answer. Keys that were
// pressed before that were meant for the program, and are lost; later ones are the shell's.
func (t *terminal) drain() {
	if !t.out.asked {
		return
	}
	if _, err := io.WriteString(t.app.Stdout, "\x1b[5n"); err != nil {
		return // the terminal is closed
	}
	var read []byte
	buf, late := make([]byte, 256), time.Now().Add(lastAnswer)
	for answers := 0; answers <= t.out.statuses; answers = len(statusAnswer.FindAllIndex(read, -1)) {
		fds := []unix.PollFd{{Fd: int32(t.app.Stdin.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(time.Until(late).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0 || time.Now().After(late) || len(read) > 1<<16:
			return
		}
		if n, err = t.app.Stdin.Read(buf); err != nil {
			return
		}
		read = append(read, buf[:n]...)
	}
}

// statusAnswer is a terminal's answer to ESC [ 5 n.
var statusAnswer = regexp.MustCompile(`\x1b\[[03]n`)

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
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
