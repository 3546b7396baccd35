package systemd

import (
	"fmt"
	"net"
)

// The names that tell the two sockets of PROTOCOL 1 apart.
const (
	KernelName = "kernel"
	EventsName = "events"
)

// Assign says which socket is the canonical and which the legacy one (PROTOCOL 1), nil for one that was not handed over.
// The names "kernel" and "events" decide; where no socket has either of them, the order does: kernel first. More than
// there is a use for is an error, since clients of the rest would wait for ever.
func Assign(sockets []Socket) (kernel, events *net.UnixListener, err error) {
	slots := map[string]**net.UnixListener{KernelName: &kernel, EventsName: &events}
	named := false
	for _, s := range sockets {
		named = named || slots[s.Name] != nil
	}
	order := []string{KernelName, EventsName}
	if !named && len(sockets) > len(order) {
		return nil, nil, fmt.Errorf("socket activation: %d sockets, but only two uses: %v", len(sockets), order)
	}
	for i, s := range sockets {
		name := s.Name
		if !named {
			name = order[i]
		}
		slot := slots[name]
		if slot == nil || *slot != nil {
			return nil, nil, fmt.Errorf("socket activation: no use for a socket named %q: name one %v each", name, order)
		}
		*slot = s.Listener
	}
	return kernel, events, nil
}
