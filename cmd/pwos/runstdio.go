package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/internal/strayframe"
	"github.com/promptware-os/pwos/view"
)

// ownStdio hands this process's standard input, output and error over to an agent's program. The kernel connects to a socket in the
// runtime directory, where no agent is, and gets the descriptors. The connection stays: each byte is the number of a signal for the
// program, and its end is the caller's.
type ownStdio struct {
	app      *app
	terminal *terminal // nil: none of them is one, or the program gets none
	name     string    // of the socket
	listener *net.UnixListener
	owner    int            // the kernel's user
	files    [3]*os.File    // what the program gets
	closing  []io.Closer    // of files, what is not this process's own
	copies   sync.WaitGroup // of output to a terminal, without a pseudo-terminal
	shows    bool           // output of the program passes this process, which
	shown    shownLog       // gets it too
	signals  chan os.Signal // to be forwarded
	taken    chan struct{}  // closed when the kernel has the descriptors, or will not get them
	kernel   *net.UnixConn  // nil: it has not got them; set before taken is closed
	taking   sync.Mutex     // while what the kernel passes on is set up
	stops    chan struct{}  // gets a value when the program has stopped
	unheard  chan struct{}  // closed when the kernel is not listened to any more
	workers  sync.WaitGroup
	over     chan struct{}
}

// stdioName begins the names of the sockets of ownStdio. They are as short as that of the kernel's own socket.
const stdioName = "io-"

// newOwnStdio listens for the kernel, and begins to catch signals, which forward sends on.
func newOwnStdio(a *app, dir string, noTTY bool) (o *ownStdio, err error) {
	if err := sweepStdio(dir); err != nil {
		return nil, err
	}
	o = &ownStdio{app: a, files: [3]*os.File{a.Stdin, a.Stdout, a.Stderr}, taken: make(chan struct{}), stops: make(chan struct{}, 1), unheard: make(chan struct{}), over: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	if noTTY {
		err = o.withoutTerminal()
	} else if o.terminal, err = newTerminal(a); o.terminal != nil {
		o.terminal.tell, o.terminal.log, o.shows = o.tell, &o.shown, true
		for fd, file := range o.files {
			if term.IsTerminal(int(file.Fd())) {
				o.files[fd] = o.terminal.theirs
			}
		}
	}
	if err != nil {
		return o, err
	}
	if o.owner, err = uidOf(dir); err != nil {
		return o, fmt.Errorf("read runtime directory: %w", err)
	}
	o.name = fmt.Sprintf("%s%08x", stdioName, rand.Uint32())
	path := filepath.Join(dir, o.name)
	if o.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return o, fmt.Errorf("hand over standard input and output: %w", err)
	}
	if err := giveToOwnerOf(dir, path); err != nil {
		return o, fmt.Errorf("hand over standard input and output: %w", err)
	}
	o.signals = make(chan os.Signal, 16)
	for _, sig := range o.forwarded() {
		if !signal.Ignored(sig) { // the program would have inherited that
			signal.Notify(o.signals, sig)
		}
	}
	signal.Stop(a.quit)
	o.workers.Go(o.serve)
	return o, nil
}

// sweepStdio removes sockets whose process was killed before the kernel had connected.
func sweepStdio(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read runtime directory: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || e.Type() != os.ModeSocket || !strings.HasPrefix(e.Name(), stdioName) || time.Since(info.ModTime()) < time.Minute {
			continue // one that is new may not listen yet
		}
		_ = os.Remove(filepath.Join(dir, e.Name())) // it may have been removed meanwhile; the next sweep tries again
	}
	return nil
}

// forwarded returns the signals that the program gets in place of this process.
func (o *ownStdio) forwarded() []os.Signal {
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
	if o.terminal == nil || !o.terminal.keyed { // else the program's terminal has job control
		list = append(list, syscall.SIGTSTP, syscall.SIGCONT)
	}
	return list
}

// withoutTerminal replaces terminals: there is no input, and what is written is shown without control characters.
func (o *ownStdio) withoutTerminal() error {
	for fd, file := range o.files {
		if !term.IsTerminal(int(file.Fd())) {
			continue
		}
		if fd == 0 {
			null, err := os.Open(os.DevNull)
			if err != nil {
				return fmt.Errorf("hand over standard input: %w", err)
			}
			o.files[fd], o.closing = null, append(o.closing, null)
			continue
		}
		from, to, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("hand over standard output: %w", err)
		}
		o.files[fd], o.closing, o.shows = to, append(o.closing, to), true
		o.copies.Go(func() {
			_, _ = io.Copy(io.MultiWriter(&view.PlainWriter{To: file}, &o.shown), from) // until the program has ended, or the terminal
			_ = from.Close()                                                            // so that the program sees that
		})
	}
	go func() {
		o.copies.Wait()
		o.shown.close()
	}()
	return nil
}

// begin lets go of what the program has now, so that the other ends of pipes see when it closes them, and forwards signals.
// With keep, standard output stays open for this process.
func (o *ownStdio) begin(keep bool) error {
	_ = o.listener.Close()
	if <-o.taken; o.kernel == nil { // it could not even try to start the program
		return nil
	}
	o.taking.Lock() // what was passed on before the program ran is set up
	defer o.taking.Unlock()
	o.workers.Go(o.forward)
	if err := o.closeFiles(); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("let go of standard input and output: %w", err)
	}
	defer null.Close()
	for fd, file := range []*os.File{o.app.Stdin, o.app.Stdout} {
		if fd == 1 && keep || term.IsTerminal(int(file.Fd())) {
			continue
		}
		if err := unix.Dup2(int(null.Fd()), int(file.Fd())); err != nil {
			return fmt.Errorf("let go of standard input and output: %w", err)
		}
	}
	if o.terminal != nil {
		if err := o.terminal.attach(); err != nil {
			return err
		}
	}
	o.workers.Go(o.stop)
	return nil
}

// stop stops this process when the program has stopped, until the shell continues it.
func (o *ownStdio) stop() {
	for {
		select {
		case <-o.stops:
		case <-o.over:
			return
		}
		if o.terminal != nil {
			o.terminal.suspend()
		} else {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // the continuation is forwarded
		}
	}
}

// forward sends signals on. A stop also stops this process, until the shell continues it.
func (o *ownStdio) forward() {
	for {
		select {
		case sig := <-o.signals:
			switch {
			case sig == syscall.SIGHUP && o.terminal != nil:
				_ = o.terminal.hangUp() // the system tells the program's whole session
			case sig == syscall.SIGTSTP:
				o.tell(syscall.SIGSTOP)
				_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
			default:
				o.tell(sig.(syscall.Signal))
			}
		case <-o.over:
			return
		}
	}
}

// tell sends a signal to the program. It fails if that, or the kernel, has ended, which others see.
func (o *ownStdio) tell(sig syscall.Signal) { _, _ = o.kernel.Write([]byte{byte(sig)}) }

// finish shows the last output of an ended program.
func (o *ownStdio) finish(ctx context.Context) {
	if o.terminal != nil {
		o.terminal.finish()
	}
	shown := make(chan struct{})
	go func() {
		o.copies.Wait()
		close(shown)
	}()
	select {
	case <-shown:
	case <-time.After(lastOutput):
	case <-ctx.Done():
	}
}

func (o *ownStdio) closeFiles() error {
	var errs []error
	for _, file := range o.closing {
		errs = append(errs, file.Close())
	}
	o.closing = nil
	return errors.Join(errs...)
}

// close restores the terminal, and hangs up: a program that still runs is ended.
func (o *ownStdio) close() error {
	close(o.over)
	var errs []error
	if o.listener != nil {
		errs = append(errs, ignoreClosed(o.listener.Close()))
	}
	if o.signals != nil { // and serve runs
		o.app.endByQuit()
		signal.Stop(o.signals)
		if <-o.taken; o.kernel != nil {
			errs = append(errs, o.unlisten())
		}
	}
	errs = append(errs, o.closeFiles())
	o.shown.close()
	if o.terminal != nil {
		errs = append(errs, o.terminal.detach())
	}
	o.workers.Wait()
	if o.kernel != nil {
		errs = append(errs, o.kernel.Close())
	}
	if o.shown.strayed() {
		o.app.note("%s", strayframe.Advice)
	}
	return errors.Join(errs...)
}
