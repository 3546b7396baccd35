package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// maxPassphrase bounds what is typed, in bytes.
const maxPassphrase = 1 << 10

var errNoPassphrase = errors.New("no passphrase was typed")

// askPassphrase asks for the passphrase of a key file at the terminal of this process, wherever its stdin comes from.
func askPassphrase(ctx context.Context, path string) (passphrase []byte, err error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("there is no terminal to ask at: %w", err)
	}
	in, err := newPatientFile(tty)
	if err != nil {
		return nil, errors.Join(err, tty.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = in.SetReadDeadline(time.Time{}) }) // fails when closed: nobody reads then
	defer func() {
		stop()
		err = errors.Join(err, in.Close(), tty.Close())
	}()
	// Raw, as a read that waits for the end of a line could not be told to stop, and nothing may be echoed.
	before, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return nil, fmt.Errorf("ask for a passphrase: %w", err)
	}
	defer func() { err = errors.Join(err, term.Restore(int(tty.Fd()), before)) }()
	if _, err := fmt.Fprintf(tty, "passphrase of %s: ", escaped(path)); err != nil {
		return nil, fmt.Errorf("ask for a passphrase: %w", err)
	}
	passphrase, err = typed(in)
	_, endErr := tty.WriteString("\r\n")
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return passphrase, errors.Join(err, endErr)
}

// typed reads what is typed up to the end of a line, byte by byte, and understands the keys that mend a mistake.
func typed(in *patientFile) ([]byte, error) {
	line := make([]byte, 0, maxPassphrase) // of that size at once, so that no copy is left behind
	var key [1]byte
	for {
		if _, err := in.Read(key[:]); err != nil {
			clear(line)
			return nil, fmt.Errorf("%w: %w", errNoPassphrase, err)
		}
		switch key[0] {
		case '\r', '\n':
			return line, nil
		case 0x03, 0x04: // Ctrl-C, Ctrl-D
			clear(line)
			return nil, errNoPassphrase
		case 0x7f, '\b':
			line = line[:max(len(line)-1, 0)]
		case 0x15: // Ctrl-U
			line = line[:0]
		default:
			if len(line) < maxPassphrase {
				line = append(line, key[0])
			}
		}
	}
}

// canAsk reports whether there is a terminal to ask at.
func canAsk() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return tty.Close() == nil
}
