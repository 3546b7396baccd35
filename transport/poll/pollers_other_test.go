//go:build !linux

package poll_test

import "github.com/promptware-os/pwos/transport/poll"

// pollers returns the pollers of this system.
func pollers() map[string]func() (poll.Poller, error) {
	return map[string]func() (poll.Poller, error){
		"readers": func() (poll.Poller, error) { return poll.NewReaders(), nil },
	}
}
