package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/transport/tlssock"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// remote is the listener for clients on other machines (PROTOCOL 13). The zero value is none.
type remote struct {
	listener net.Listener
	server   *tlssock.Server
	ended    chan error // what Serve returned
	why      string     // why there is none, though the configuration wants one
}

// listenTLS binds the address of the configuration, which becomes the one that is bound. It does not without keys: over a
// network, open mode would let everybody in.
func (d *Daemon) listenTLS(ctx context.Context) (err error) {
	r, at := &d.remote, &d.config.Listen.TLS
	switch {
	case *at == "":
		return nil
	case d.config.AuthorizedKeys == "":
		r.why = fmt.Sprintf("listen.tls: the kernel does not listen at %s, since it has no authorized_keys and would let everybody in: make the file, then restart the kernel", *at)
		d.log.Error(r.why)
		*at = ""
		return nil
	}
	if r.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", *at); err != nil {
		return fmt.Errorf("configuration: listen.tls: %w", err)
	}
	*at = r.listener.Addr().String()
	return nil
}

// serveTLS serves the listener, if there is one. server counts the connections of agents at its sockets and here together.
func (d *Daemon) serveTLS(server *unixsock.Server) error {
	r := &d.remote
	if r.listener == nil {
		return nil
	}
	var err error
	r.server, err = tlssock.NewServer(tlssock.ServerConfig{
		Listener: r.listener, Key: d.state.HostKey, Authenticator: d.keyed, Count: server.Count, MaxLine: d.longLine(),
		Log: d.log.With("component", "tls"),
		Handler: func(ctx context.Context, link *tlssock.Link, peer access.Peer, done func()) {
			d.idle.Occupied(true)
			d.serve(ctx, link, link.Drain, peer, func() {
				d.idle.Occupied(false)
				done()
			})
		},
	})
	if err != nil {
		return err
	}
	d.log.Info("listening for TLS", "address", d.config.Listen.TLS, "host_key", d.state.HostKey.Key().Fingerprint())
	r.ended = make(chan error, 1)
	go func() {
		err := r.server.Serve()
		if err != nil {
			d.log.Error("no longer listening for TLS; the sockets still work", "address", d.config.Listen.TLS, "error", err)
		}
		r.ended <- err
	}()
	return nil
}

// shutdown ends the server. Connections that have not finished when ctx ends are closed.
func (r *remote) shutdown(ctx context.Context) error {
	if r.server == nil {
		return nil
	}
	err := r.server.Shutdown(ctx)
	<-r.ended // it is logged
	return err
}

// close closes the listener, which the server may have closed before.
func (r *remote) close() error {
	if r.listener == nil {
		return nil
	}
	if err := r.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close listener: %w", err)
	}
	return nil
}

// nameOf returns what the log calls a peer: its process, or its address.
func nameOf(peer access.Peer) any {
	if peer.Address.IsValid() {
		return peer.Address
	}
	return peer.PID
}
