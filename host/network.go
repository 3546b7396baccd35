package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/promptware-os/pwos/host/confine"
)

// Sockets listen in the network of one program. Only that program and its descendants can connect.
type Sockets struct {
	Proxy     net.Listener            // HTTP_PROXY has its address
	DNS       net.PacketConn          // 127.0.0.1:53, UDP
	DNSTCP    net.Listener            // 127.0.0.1:53, TCP
	Relay     []net.Listener          // where names lead to, on 80, 443 and Command.Ports: a connection's LocalAddr is its destination
	Upstreams map[string]net.Listener // one for each of Command.Upstreams
	Locals    []net.Listener          // localhost, on Command.Locals
	// Dialer connects to the program's own ports on its localhost, if Command.Publishes.
	Dialer interface {
		Dial(ctx context.Context, port uint16) (net.Conn, error)
		Close() error
	}
}

// Close closes all sockets.
func (s *Sockets) Close() error {
	errs := []error{s.Proxy.Close(), s.DNS.Close(), s.DNSTCP.Close()}
	for _, l := range s.Relay {
		errs = append(errs, l.Close())
	}
	for _, l := range s.Upstreams {
		errs = append(errs, l.Close())
	}
	for _, l := range s.Locals {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, s.Dialer.Close())...)
}

// ProxyURL is the address of the proxy in every program's network.
const ProxyURL = "http://127.0.0.1:901"

// UpstreamURL returns the address of the upstream with that index in Command.Upstreams, in the program's network.
func UpstreamURL(index int) string {
	return fmt.Sprintf("http://127.0.0.1:%d", confine.UpstreamPort+index)
}

// UpstreamEnv returns the name of the variable with an upstream's address: PWOS_UPSTREAM_ and its name, in capitals, with _
// for every other character.
func UpstreamEnv(name string) string {
	return "PWOS_UPSTREAM_" + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

// serve receives what the shim hands over, and passes it to the functions of the command.
func (p *Process) serve(hand *net.UnixConn) error {
	taken, err := p.plan.Receive(hand)
	if err != nil {
		return err
	}
	if taken.Share != nil {
		err = p.adopt(taken.Share)
		taken.Share = nil
	}
	if err == nil && taken.Sockets != nil {
		err = p.serveNetwork(taken.Sockets)
		taken.Sockets = nil
	}
	if err == nil && taken.Terminal != nil {
		err = p.caller.giveTerminal(taken.Terminal)
		taken.Terminal = nil
	}
	if err != nil {
		return errors.Join(err, taken.Close())
	}
	if err := p.cover.keep(p.plan, &taken); err != nil {
		return errors.Join(err, taken.Close())
	}
	if taken.Calls != nil {
		p.carryOut(taken.Calls)
	}
	return confine.Accepted(hand)
}

// adopt passes the program's share to Share.Adopt.
func (p *Process) adopt(share *os.File) error {
	defer closeFile(share)
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", share.Fd()))
	if err == nil {
		err = p.command.Share.Adopt(root)
	}
	if err != nil {
		return fmt.Errorf("adopt the program's directory: %w", err)
	}
	return nil
}

// serveNetwork passes the sockets of the program's network to Command.Network.
func (p *Process) serveNetwork(taken *confine.Sockets) (err error) {
	s := &Sockets{Proxy: taken.Proxy, DNS: taken.DNS, DNSTCP: taken.DNSTCP, Relay: taken.Relay, Upstreams: map[string]net.Listener{}, Locals: taken.Locals, Dialer: &taken.Dialer}
	for i, name := range p.command.Upstreams {
		s.Upstreams[name] = taken.Upstreams[i]
	}
	if p.command.Network == nil {
		return s.Close()
	}
	if err = p.command.Network(p, s); err != nil {
		return errors.Join(fmt.Errorf("serve the program's network: %w", err), s.Close())
	}
	return nil
}

// handPair opens the socket pair over which a shim hands descriptors over.
func handPair() (ours *net.UnixConn, theirs *os.File, err error) {
	end, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	conn, err := net.FileConn(end.(*socket).File)
	if err := errors.Join(err, end.Close()); err != nil {
		closeFile(theirs)
		return nil, nil, fmt.Errorf("open socket pair: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}
