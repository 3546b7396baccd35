package unixsock

import (
	"context"
	"errors"
	"net"
)

var (
	JudgePeer  = judgePeer
	HiddenName = hiddenName
	Publish    = publish
	TryLock    = tryLock
	Acquire    = acquire
)

// Remember is what happens to a connection that was accepted before the shutdown and received after it.
func (s *Server) Remember(conn net.Conn) { s.remember(conn) }

// Probe is probe without the file that it is about.
func Probe(ctx context.Context, path string) (Liveness, error) {
	f, err := probe(ctx, path)
	return f.state, errors.Join(err, f.err)
}
