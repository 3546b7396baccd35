package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/cmd/pwos/internal/panel"
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
	// panel shows questions over what the program shows; nil: the keys are not its own, or the configuration has switched it off.
	panel   *panel.Panel
	answers chan panel.Answer // of a person, to them
	// notifier tells of them; nil: the configuration has switched it off.
	notifier *notifier

	before  *term.State // of own; nil: not attached
	in      *cli.PatientFile
	out     terminalModes
	output  counter // of bytes shown
	signals chan os.Signal
	// continued gets a value when the shell has continued this process, and this has taken the terminal back.
	continued chan struct{}
	over      chan struct{} // closed by detach
	shown     chan struct{} // closed when all output was shown
	workers   sync.WaitGroup
	hangUp    func() error
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
	t.panel.Resize(int(size.Col), int(size.Row)) // before the program hears of it, and draws
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
	if t.keyed {
		if t.panel, t.answers = t.newPanel(); t.panel != nil {
			t.out.to = t.panel
		}
	}
	if t.in, err = cli.NewPatientFile(t.own); err != nil {
		return err
	}
	if t.before, err = term.GetState(int(t.own.Fd())); err != nil {
		return errors.Join(fmt.Errorf("read settings of terminal: %w", err), t.in.Close())
	}
	t.signals, t.continued, t.over, t.shown = make(chan os.Signal, 2), make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(t.signals, syscall.SIGWINCH, syscall.SIGCONT)
	t.takeBack() // also the size, which may have changed before signal.Notify
	t.workers.Go(func() {
		defer close(t.shown)
		_, _ = io.Copy(io.MultiWriter(&t.out, t.log, &t.output), t.ours) // until the program's end is closed, or the output fails
		t.log.close()
		_ = t.hangUp()
	})
	if t.keyed {
		t.workers.Go(t.typing)
	}
	t.workers.Go(t.control)
	return nil
}

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
		if typed := t.panel.Typed(keys[:n]); len(typed) > 0 {
			_, err = t.ours.Write(typed)
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

// glance is how often a process in the background looks whether it is in the foreground again, and how long one waits for a shell.
const glance = 200 * time.Millisecond

// control handles SIGWINCH and SIGCONT.
func (t *terminal) control() {
	for sig := range t.signals {
		if sig == syscall.SIGCONT { // the shell may have changed the terminal
			t.takeBack()
			select {
			case t.continued <- struct{}{}:
			default: // nobody waits
			}
			continue
		}
		_ = t.resize() // fails if the terminal is closed, which its reader reports
	}
}

// suspend restores the terminal and stops this process, as the program has stopped, until the shell continues it; then it continues the
// program. Without a shell the system ignores the stop, and the program continues after a while.
func (t *terminal) suspend() {
	select {
	case <-t.continued: // earlier
	default:
	}
	t.calm()
	t.panel.Hide(true)
	t.restore()
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select {
	case <-t.continued:
	case <-t.over:
		return
	case <-time.After(glance):
		t.takeBack()
	}
	t.tell(syscall.SIGCONT)
}

// calm waits until what the program has written is shown, so that it comes before what the shell says.
func (t *terminal) calm() {
	for shown, tries := int64(-1), 0; shown != t.output.Load() && tries < 10; tries++ {
		shown = t.output.Load()
		time.Sleep(glance / 10)
	}
}

// counter counts the bytes that are written to it.
type counter struct{ atomic.Int64 }

// Write implements io.Writer.
func (c *counter) Write(data []byte) (int, error) {
	c.Add(int64(len(data)))
	return len(data), nil
}

// takeBack sets this process's terminal to raw mode, if that is the program's. It ignores errors: the reader reports a closed terminal.
func (t *terminal) takeBack() {
	if t.keyed && t.foreground() {
		_, _ = term.MakeRaw(int(t.own.Fd()))
	}
	_ = t.resize()
	t.panel.Hide(false)
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
	pending := t.panel.Close()            // lets all output through
	_ = t.in.SetReadDeadline(time.Time{}) // stops the copying of keys
	err := ignoreClosed(t.hangUp())
	signal.Stop(t.signals)
	close(t.signals)
	close(t.over)
	t.workers.Wait()
	if t.notifier != nil {
		t.notifier.stop()
	}
	t.out.asked, t.out.statuses = t.out.asked || pending > 0, t.out.statuses+pending
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
