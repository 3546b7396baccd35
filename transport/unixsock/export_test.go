package unixsock

import (
	"context"
	"errors"
	"net"
)

var (
	CheckPeer  = checkPeer
	HiddenName = hiddenName
	Publish    = publish
	TryLock    = tryLock
	Acquire    = acquire
)

// Remember is remember.
func (s *Server) Remember(conn net.Conn) { s.remember(conn) }

// Probe is probe without the FileInfo.
func Probe(ctx context.Context, path string) (Liveness, error) {
	f, err := probe(ctx, path)
	return f.state, errors.Join(err, f.err)
}
