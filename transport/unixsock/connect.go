package unixsock

import (
	"context"
	"errors"
	"net"
	"runtime"
	"syscall"
	"time"
)

// connectPause lies between two attempts to get into a listener's full queue.
const connectPause = 5 * time.Millisecond

// bsdAttempts is how often a refused connect is tried on systems that refuse for a full queue as well as for nobody
// listening. Linux tells the two apart (ECONNREFUSED, EAGAIN).
const bsdAttempts = 4

// connect dials the socket at path and waits, until ctx ends, for as long as the listener's queue is full.
func connect(ctx context.Context, path string) (*net.UnixConn, error) {
	var dialer net.Dialer
	for attempt := 1; ; attempt++ { // the queue empties as the daemon accepts; nothing tells when
		conn, err := dialer.DialContext(ctx, "unix", path)
		if err == nil {
			return conn.(*net.UnixConn), nil // "unix" gives no other
		}
		full := errors.Is(err, syscall.EAGAIN) ||
			errors.Is(err, syscall.ECONNREFUSED) && runtime.GOOS != "linux" && attempt < bsdAttempts
		if !full {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(connectPause):
		}
	}
}
