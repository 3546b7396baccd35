package unixsock

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// reserveSize is how many descriptors a Server holds back: enough to accept operators' connections, to find out who they
// are, and for a kernel that is told to end what took all the others.
const reserveSize = 16

// reserve holds descriptors that are given up when the process has no others left, so that the operator can be let in. They
// are taken back when a connection has ended; until then no agent is let in.
type reserve struct {
	mu    sync.Mutex
	files []*os.File
}

// refill opens what is missing, as far as that can be had.
func (r *reserve) refill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.files) < reserveSize {
		file, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		r.files = append(r.files, file)
	}
}

// full reports whether nothing is missing.
func (r *reserve) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.files) == reserveSize
}

// release gives the descriptors up, and reports whether there were any.
func (r *reserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, file := range r.files {
		_ = file.Close() // it was opened for its descriptor alone
	}
	had := len(r.files) > 0
	r.files = nil
	return had
}

// exhausted reports whether an error says that no descriptor is left.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
