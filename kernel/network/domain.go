// Package network decides what an agent's network may reach, before the kernel connects on its behalf.
package network

import (
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Domain has no state: a connection leaves only entries in the kernel.
type Domain struct {
	kernel.Stateless
	kernel.Handlers
	admits func(hosts []string, host string, port int64) bool
}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain. admits reports whether the hosts of a capability allow a host and port; with port 0,
// whether they allow the name on any port.
func New(admits func(hosts []string, host string, port int64) bool) *Domain {
	d := &Domain{admits: admits}
	d.Handlers = kernel.Bind(schema.Net,
		kernel.Effect(schema.NetConnect, d.connect),
		kernel.Step(schema.NetConnect.End, kernel.End, nil),
		kernel.Effect(schema.NetPublish, publish),
		kernel.Step(schema.NetPublish.End, kernel.End, nil),
		kernel.Effect(schema.NetRequest, request),
		kernel.Step(schema.NetRequest.End, kernel.End, nil),
	)
	return d
}

func (d *Domain) connect(call *kernel.Call, in *schema.NetConnectInput) (*schema.NetConnectInput, error) {
	if in.Refused != "" {
		return nil, fault.NetForbidden.New("pid %d may not connect to %s: %s", call.PID, place(in), in.Refused)
	}
	if in.Local {
		return in, local(call, in)
	}
	if !d.admits(call.Token.Hosts(call.Tick), in.Host, in.Port) {
		return nil, fault.NetForbidden.New("pid %d may not connect to %s", call.PID, place(in)).
			WithFix("allow it too with %s", kernel.AddCommand(call.Token, d.lacking(call, in), call.Tick, "Http.Fetch", "--host", pattern(in)))
	}
	return in, nil
}

// local refuses a connection to a service of this machine that the token does not name.
func local(call *kernel.Call, in *schema.NetConnectInput) error {
	port := uint16(in.Port)
	if call.Token.AllowsLocalhost(port, call.Tick) {
		return nil
	}
	return fault.NetForbidden.New("pid %d may not connect to port %d of this machine", call.PID, port).
		WithFix("allow it too with %s", kernel.AddCommand(call.Token, call.Token.LocalhostLacking(call.PID, call.Tick, port), call.Tick, schema.Localhost(port)))
}

// publish permits what the operator asked for with the program.
func publish(_ *kernel.Call, in *schema.NetPublishInput) (*schema.NetPublishInput, error) {
	return in, nil
}

func request(call *kernel.Call, in *schema.NetRequestInput) (*schema.NetRequestInput, error) {
	switch {
	case !call.Token.AllowsUpstream(in.Upstream, call.Tick):
		return nil, fault.UpstreamForbidden.New("pid %d may not use the upstream %s", call.PID, in.Upstream).
			WithFix("allow it too with %s", kernel.AddCommand(call.Token, call.Token.UpstreamLacking(call.PID, call.Tick, in.Upstream), call.Tick, "Upstream:"+in.Upstream))
	case in.Refused != "":
		return nil, fault.UpstreamForbidden.New("pid %d may not send %s %s to the upstream %s: %s", call.PID, in.Method, in.Path, in.Upstream, in.Refused)
	}
	return in, nil
}

// lacking is the process whose token must allow the host before the caller can reach it.
func (d *Domain) lacking(call *kernel.Call, in *schema.NetConnectInput) int64 {
	return call.Token.HostLacking(call.PID, call.Tick, func(g *schema.HTTPGrant) bool { return d.admits(g.Hosts, in.Host, in.Port) })
}

func place(in *schema.NetConnectInput) string {
	host := in.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if in.Port == 0 {
		return host
	}
	return fmt.Sprintf("%s:%d", host, in.Port)
}

// pattern is the host as a grant names it. Without a port it means 80 and 443.
func pattern(in *schema.NetConnectInput) string {
	if in.Port == 80 || in.Port == 443 {
		return place(&schema.NetConnectInput{Host: in.Host})
	}
	return place(in)
}
