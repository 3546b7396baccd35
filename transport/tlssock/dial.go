package tlssock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/promptware-os/pwos/access"
)

// Dial connects to the kernel with that name (access.TLSName). It does not judge the kernel's key: the login does, with
// the returned channel, and must come before anything else.
func Dial(ctx context.Context, name string) (*tls.Conn, access.TLS, error) {
	name, address, err := access.TLSName(name)
	if err != nil {
		return nil, access.TLS{}, err
	}
	stream, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, access.TLS{}, err
	}
	session := tls.Client(whole{stream}, &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // the login checks the key, and nobody vouches for it
	})
	channel, err := handshake(ctx, session)
	if err == nil {
		state := session.ConnectionState()
		channel.Name = name
		channel.Shown, err = access.ShownKey(&state)
	}
	if err != nil {
		return nil, access.TLS{}, errors.Join(fmt.Errorf("TLS: %w", err), stream.Close())
	}
	return session, channel, nil
}

// errCut means that the stream below a session has ended before the session.
var errCut = fmt.Errorf("the connection was cut: %w", io.ErrUnexpectedEOF)

// whole is a stream whose end is an error, unless the session has ended before. crypto/tls lets it pass between two
// records, where anybody on the way can cut a session.
type whole struct{ net.Conn }

// Read implements io.Reader.
func (w whole) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	return n, err
}

// handshake returns the channel of a session, which both ends know.
func handshake(ctx context.Context, session *tls.Conn) (channel access.TLS, err error) {
	if err := session.HandshakeContext(ctx); err != nil {
		return channel, err
	}
	state := session.ConnectionState()
	exporter, err := state.ExportKeyingMaterial(access.ExporterLabel, nil, access.ExporterSize)
	if err != nil {
		return channel, fmt.Errorf("export keying material: %w", err)
	}
	copy(channel.Exporter[:], exporter)
	return channel, nil
}
