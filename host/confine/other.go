//go:build unix && !linux

package confine

import (
	"context"
	"errors"
	"net"
)

// Namespaces reports whether the plan makes namespaces.
func (p *Plan) Namespaces() bool { return false }

// Listens reports whether the daemon serves the program's network.
func (p *Plan) Listens() bool { return false }

// Hands reports whether a process hands anything over.
func (p *Plan) Hands() bool { return false }

// OpenTerminal does nothing: programs have no pseudo-terminals of their own.
func (p *Plan) OpenTerminal() error { return nil }

// Receive receives nothing: programs have no separate networks.
func (p *Plan) Receive(*net.UnixConn) (Handed, error) { return Handed{}, nil }

// Gaps lists what is not enforced on this system.
func (Means) Gaps() []string {
	return []string{
		"agents can read the kernel's journal and keys, so that no agent starts without --allow-gaps: this system has no sandbox that a program can put itself into",
		"agents can write wherever the daemon's user can",
		"agents can trace and signal, and so become, any process of the daemon's user, the operator's included",
		"a process that an agent puts into a session of its own is not found: it outlives the agent, and passes for the operator's",
		"the number of processes of an agent is not bounded",
		"agents can use the network, whatever --net says",
		"the programs that agents start are not recorded, and rules about them (Program::) have no effect",
	}
}

// Dialer does not exist on this system: programs have no separate networks.
type Dialer struct{}

// Dial fails.
func (*Dialer) Dial(context.Context, uint16) (net.Conn, error) { return nil, errors.ErrUnsupported }

// Close does nothing.
func (*Dialer) Close() error { return nil }

// Calls does not exist on this system: programs connect themselves.
type Calls struct{}

// Close does nothing.
func (*Calls) Close() error { return nil }

// Veils do not exist on this system: nothing is hidden from programs.
type Veils struct{}

// NewVeils returns none.
func NewVeils(string) (*Veils, error) { return nil, nil }

// Close does nothing.
func (*Veils) Close() error { return nil }

// Share does nothing.
func (*Veils) Share(*Plan) {}
