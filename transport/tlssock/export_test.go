package tlssock

import (
	"crypto/tls"
	"net"
)

// StreamOf returns the stream below a session that Dial has made.
func StreamOf(session *tls.Conn) *net.TCPConn { return session.NetConn().(whole).Conn.(*net.TCPConn) }
