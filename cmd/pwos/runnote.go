package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/promptware-os/pwos/internal/regular"
	"github.com/promptware-os/pwos/view"
)

// note tells the user something about a run at a terminal. Elsewhere standard error is the program's alone, and keepNotes puts it into
// the kernel's log.
func (a *app) note(format string, args ...any) {
	if a.StderrTerminal() {
		a.Say(format, args...)
		return
	}
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// keepNotes appends the notes to the log of a kernel of this machine, at a path; "" for another machine's.
func (a *app) keepNotes(path string) error {
	var lines []byte
	for _, text := range a.notes {
		line := view.Object(nil).Text("level", "info").Text("component", "run").Text("time", time.Now().UTC().Format(time.RFC3339)).Text("message", text)
		lines = append(append(lines, line.Close()...), '\n')
	}
	a.notes = nil
	if len(lines) == 0 || path == "" {
		return nil
	}
	file, _, err := regular.Open(path, os.O_WRONLY|os.O_APPEND)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a service manager has the log
	}
	if err != nil {
		return fmt.Errorf("write to the kernel's log: %w", err)
	}
	_, err = file.Write(lines)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write to the kernel's log: %w", err)
	}
	return nil
}
