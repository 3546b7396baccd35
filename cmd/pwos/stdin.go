package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// patientFile reads a file whose Read may wait for ever, such as a pipe that somebody holds open, and can be told to stop. The
// runtime's poller would do that for a non-blocking descriptor, but stdin is shared with other processes, and making it
// non-blocking would change it for them.
type patientFile struct {
	file  *os.File
	awake *os.File // readable when reading is to stop
	wake  func() error
}

func newPatientFile(file *os.File) (*patientFile, error) {
	awake, wake, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make wake pipe: %w", err)
	}
	return &patientFile{file: file, awake: awake, wake: sync.OnceValue(wake.Close)}, nil
}

// Read returns os.ErrDeadlineExceeded once SetReadDeadline was called.
func (f *patientFile) Read(p []byte) (int, error) {
	fds := []unix.PollFd{
		{Fd: int32(f.file.Fd()), Events: unix.POLLIN},
		{Fd: int32(f.awake.Fd()), Events: unix.POLLIN},
	}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return 0, os.ErrDeadlineExceeded
		default:
			return f.file.Read(p)
		}
	}
}

// SetReadDeadline stops reading, whatever the time: nobody asks for a later one.
func (f *patientFile) SetReadDeadline(time.Time) error { return f.wake() }

// Close gives back what was taken beyond the file itself.
func (f *patientFile) Close() error { return errors.Join(f.wake(), f.awake.Close()) }
