//go:build linux && !pwos_readers

package poll

// New returns the system's best poller.
func New() (Poller, error) { return newEpoll() }
