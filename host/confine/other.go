//go:build unix && !linux

package confine

import "net"

// Namespaces reports whether the plan makes namespaces.
func (p *Plan) Namespaces() bool { return false }

// Listens reports whether Enter will hand sockets over.
func (p *Plan) Listens() bool { return false }

// Receive has nothing to take: there are no networks of a program's own.
func (p *Plan) Receive(*net.UnixConn) (*Sockets, error) { return &Sockets{}, nil }
