package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/view"
)

// outputName begins the names of the FIFOs of agentOutput in the runtime directory, where no agent sees them.
const outputName = "stderr-"

// agentOutput shows what an agent that runs in the foreground writes to standard error. The kernel writes it to a FIFO, which the
// agent waits for: all of it arrives and in order, however short its log is and however full the disk.
type agentOutput struct {
	path string
	from *os.File
	hold *os.File      // without it, from would end when an agent that is restarted ends
	done chan struct{} // closed when from has ended, or to cannot be written
	err  error         // why; set before done is closed
}

// newAgentOutput creates the FIFO in the runtime directory, and begins to copy to a file. It escapes control characters if that is a
// terminal.
func newAgentOutput(dir string, to *os.File) (o *agentOutput, err error) {
	if err := sweepOutputs(dir); err != nil {
		return nil, err
	}
	o = &agentOutput{path: filepath.Join(dir, fmt.Sprintf("%s%d-%x", outputName, os.Getpid(), rand.Uint32())), done: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make FIFO for the agent's output: %w", err), o.close())
		}
	}()
	fresh := filepath.Join(dir, "."+filepath.Base(o.path)) // a sweep does not see it before it has a reader
	if err := unix.Mkfifo(fresh, 0o600); err != nil {
		return o, err
	}
	if o.from, err = os.OpenFile(fresh, os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
		o.hold, err = os.OpenFile(fresh, os.O_WRONLY|unix.O_NONBLOCK, 0)
	}
	if err == nil {
		err = giveToOwnerOf(dir, fresh)
	}
	if err == nil {
		err = os.Rename(fresh, o.path)
	}
	if err != nil {
		return o, errors.Join(err, os.Remove(fresh))
	}
	var out io.Writer = to
	if term.IsTerminal(int(to.Fd())) {
		out = &view.PlainWriter{To: to}
	}
	go func() {
		defer close(o.done)
		_, o.err = io.Copy(out, o.from)
	}()
	return o, nil
}

// giveToOwnerOf gives the file at path to the owner of a directory: the kernel may run as another user than root.
func giveToOwnerOf(dir, path string) error {
	info, err := os.Stat(dir)
	if err != nil || os.Getuid() != 0 {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		return os.Chown(path, int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// sweepOutputs removes FIFOs whose reader was killed.
func sweepOutputs(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read runtime directory: %w", err)
	}
	for _, e := range entries {
		if e.Type() != os.ModeNamedPipe || !strings.HasPrefix(e.Name(), outputName) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		file, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		switch {
		case err == nil:
			_ = file.Close() // nothing was written
		case errors.Is(err, unix.ENXIO):
			_ = os.Remove(path) // it may have been removed meanwhile; the next sweep tries again
		}
	}
	return nil
}

// rest shows the rest, after the kernel has said that the agent has ended.
func (o *agentOutput) rest(ctx context.Context) error {
	_ = o.hold.Close() // nothing was written to it
	select {
	case <-o.done:
		return o.failure()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// failure returns why the output cannot be shown any more. It must be called after done is closed.
func (o *agentOutput) failure() error {
	if o.err != nil {
		return fmt.Errorf("show output: %w", o.err)
	}
	return nil
}

// close stops the copy, unless it waits for the reader of this process's own output, and removes the FIFO.
func (o *agentOutput) close() error {
	var errs []error
	if o.hold != nil {
		_ = o.hold.Close() // rest may have closed it
	}
	if o.from != nil {
		_ = o.from.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed file
		errs = append(errs, o.from.Close())
	}
	if err := os.Remove(o.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
