package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// maxPassphrase is the most bytes of a typed passphrase.
const maxPassphrase = 1 << 10

// errInterrupted is the error of a question at which the user has pressed Ctrl-C or Ctrl-D.
var errInterrupted = errors.New("interrupted")

// keyPassphrase asks for the passphrase of a key file at the controlling terminal.
func keyPassphrase(ctx context.Context, path string) (passphrase []byte, err error) {
	return AskPassphrase(ctx, fmt.Sprintf("passphrase of %s: ", view.Escaped(path)))
}

// AskPassphrase asks a question at the controlling terminal, and returns the line that is typed, which is not echoed.
func AskPassphrase(ctx context.Context, question string) (passphrase []byte, err error) {
	err = atTerminal(ctx, question, func(in *PatientFile) (err error) {
		if passphrase, err = typed(in, io.Discard); err != nil {
			err = fmt.Errorf("no passphrase was typed: %w", err)
		}
		return err
	})
	return passphrase, err
}

// atTerminal prints a question to the controlling terminal, which need not be stdin, and reads keys from it.
func atTerminal(ctx context.Context, question string, read func(*PatientFile) error) (err error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("there is no terminal to ask at: %w", err)
	}
	in, err := NewPatientFile(tty)
	if err != nil {
		return errors.Join(err, tty.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = in.SetReadDeadline(time.Time{}) }) // fails only on a closed file
	defer func() {
		stop()
		err = errors.Join(err, in.Close(), tty.Close())
	}()
	// Raw mode, since a read in line mode could not be interrupted, and the terminal would echo the keys.
	before, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return fmt.Errorf("ask at the terminal: %w", err)
	}
	defer func() { err = errors.Join(err, term.Restore(int(tty.Fd()), before)) }()
	if _, err := tty.WriteString(question); err != nil {
		return fmt.Errorf("ask at the terminal: %w", err)
	}
	err = read(in)
	_, endErr := tty.WriteString("\r\n")
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errors.Join(err, endErr)
}

// AskKey asks a question at the controlling terminal, and returns the key that is pressed.
func AskKey(ctx context.Context, question string) (key byte, err error) {
	err = atTerminal(ctx, question, func(in *PatientFile) error {
		var keys [1]byte
		if _, err := in.Read(keys[:]); err != nil {
			return err
		}
		if key = keys[0]; key == 0x03 || key == 0x04 { // Ctrl-C, Ctrl-D
			return Ended{Status: exitInterrupted, Signal: syscall.SIGINT}
		}
		return nil
	})
	return key, err
}

// AskWord asks a question at the controlling terminal, and returns the line that is typed. What was typed before, to a program that has just
// ended, is no answer.
func AskWord(ctx context.Context, question string) (word string, err error) {
	err = atTerminal(ctx, "", func(in *PatientFile) error {
		if err := in.drain(); err != nil {
			return err
		}
		if _, err := in.file.WriteString(question); err != nil {
			return fmt.Errorf("ask at the terminal: %w", err)
		}
		line, err := typed(in, in.file)
		word = string(line)
		return err
	})
	return word, err
}

// typed reads a line byte by byte, and handles the editing keys. It echoes what can be displayed.
func typed(in *PatientFile, echo io.Writer) ([]byte, error) {
	line := make([]byte, 0, maxPassphrase) // at its full size, so that growing leaves no copy in memory
	var key [1]byte
	for {
		if _, err := in.Read(key[:]); err != nil {
			clear(line)
			return nil, err
		}
		switch key[0] {
		case '\r', '\n':
			return line, nil
		case 0x03, 0x04: // Ctrl-C, Ctrl-D
			clear(line)
			return nil, errInterrupted
		case 0x7f, '\b':
			if len(line) > 0 {
				line = line[:len(line)-1]
				_, _ = io.WriteString(echo, "\b \b") // a terminal that is gone ends the next read
			}
		case 0x15: // Ctrl-U
			_, _ = io.WriteString(echo, strings.Repeat("\b \b", len(line)))
			line = line[:0]
		default:
			if len(line) < maxPassphrase {
				line = append(line, key[0])
				if key[0] >= ' ' && key[0] < 0x7f {
					_, _ = echo.Write(key[:])
				}
			}
		}
	}
}

// canAsk reports whether this process has a controlling terminal.
func canAsk() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return tty.Close() == nil
}

// maxPayload is the most bytes that are read from stdin, which may have no end. The kernel's own limit is lower (PROTOCOL 2).
const maxPayload = 64 << 20

// Payload has the flag of a verb that takes a value.
type Payload struct{ text bool }

func (p *Payload) Add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.text, "string", false, "send the value as a string, even if it is JSON")
}

// PayloadHelp is the help text of verbs that take a value.
const PayloadHelp = `A value that is valid JSON is sent as JSON, any other value as a string; --string always
sends a string. With - it is read from stdin; one line end at the end of a string is
removed.`

// Value returns an argument, or stdin if that is "-", as a JSON value.
func (a *App) Value(ctx context.Context, cmd *cobra.Command, p Payload, arg string) (schema.Value, error) {
	text := []byte(arg)
	if arg == "-" {
		var err error
		if text, err = a.ReadStdin(ctx); err != nil {
			return nil, err
		}
	}
	if !p.text && schema.Valid(text) {
		return bytes.TrimSpace(text), nil
	}
	if !utf8.Valid(text) {
		return nil, Usage(cmd, errors.New("the value is neither JSON nor UTF-8 text"))
	}
	if arg == "-" {
		text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	}
	return schema.AppendString(nil, string(text)), nil
}

// ReadStdin reads stdin to its end. It stops when ctx ends.
func (a *App) ReadStdin(ctx context.Context) (text []byte, err error) {
	in, err := NewPatientFile(a.Stdin)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = in.SetReadDeadline(time.Time{}) }) // fails only on a closed file
	defer func() {
		stop()
		err = errors.Join(err, in.Close())
	}()
	text, err = io.ReadAll(io.LimitReader(in, maxPayload+1))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("read stdin: %w", err)
	case len(text) > maxPayload:
		return nil, fmt.Errorf("read stdin: more than %d bytes", maxPayload)
	}
	return text, nil
}

// PatientFile reads a file whose Read may block forever, such as a pipe that another process keeps open. Its reads
// can be interrupted. A deadline of os.File would need a non-blocking descriptor, but stdin is shared with
// other processes, for which it would become non-blocking too.
type PatientFile struct {
	file  *os.File
	awake *os.File // readable once reading must stop
	wake  func() error
}

func NewPatientFile(file *os.File) (*PatientFile, error) {
	awake, wake, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make wake pipe: %w", err)
	}
	return &PatientFile{file: file, awake: awake, wake: sync.OnceValue(wake.Close)}, nil
}

// Read reads from the file. It returns os.ErrDeadlineExceeded once SetReadDeadline was called.
func (f *PatientFile) Read(p []byte) (int, error) {
	if err := f.Await(); err != nil {
		return 0, err
	}
	return f.file.Read(p)
}

// drain reads what is there.
func (f *PatientFile) drain() error {
	var keys [512]byte
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.file.Fd()), Events: unix.POLLIN}}, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n == 0:
			return nil
		default:
			if _, err := f.file.Read(keys[:]); err != nil {
				return err
			}
		}
	}
}

// Await waits until the file can be read. It returns os.ErrDeadlineExceeded once SetReadDeadline was called.
func (f *PatientFile) Await() error {
	fds := []unix.PollFd{
		{Fd: int32(f.file.Fd()), Events: unix.POLLIN},
		{Fd: int32(f.awake.Fd()), Events: unix.POLLIN},
	}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return os.ErrDeadlineExceeded
		default:
			return nil
		}
	}
}

// SetReadDeadline interrupts reading at once and for good. It ignores the time, since callers set only past ones.
func (f *PatientFile) SetReadDeadline(time.Time) error { return f.wake() }

// Close releases the wake pipe. It does not close the file.
func (f *PatientFile) Close() error { return errors.Join(f.wake(), f.awake.Close()) }
