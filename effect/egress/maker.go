package egress

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/promptware-os/pwos/schema"
)

// Maker returns what is known of the process that has the client's end of a connection of an agent.
type Maker func(pid int64, client, server netip.AddrPort) schema.NetMaker

// makerKey is the context key of a function that returns the schema.NetMaker of a connection of the agent.
type makerKey struct{}

// by returns a context for what a connection of the agent asks for. Who made the connection is looked up once, when that is journaled.
func (a *agent) by(ctx context.Context, c net.Conn) context.Context {
	if a.Maker == nil {
		return ctx
	}
	client, errClient := netip.ParseAddrPort(c.RemoteAddr().String())
	server, errServer := netip.ParseAddrPort(c.LocalAddr().String())
	if errClient != nil || errServer != nil {
		return ctx
	}
	return context.WithValue(ctx, makerKey{}, sync.OnceValue(func() schema.NetMaker { return a.Maker(a.pid, client, server) }))
}

// request returns a context that lasts as long as the agent, for what a request asks for.
func (a *agent) request(of context.Context) context.Context {
	return context.WithValue(a.ctx, makerKey{}, of.Value(makerKey{}))
}

// makerOf returns who made the connection of a context.
func makerOf(ctx context.Context) (none schema.NetMaker) {
	if maker, ok := ctx.Value(makerKey{}).(func() schema.NetMaker); ok {
		return maker()
	}
	return none
}
