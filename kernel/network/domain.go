// Package network decides what an agent's network may reach, before the kernel connects for it.
package network

import (
	"errors"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Domain has no state: a connection leaves nothing in the kernel but its entries.
type Domain struct {
	admits func(hosts []string, host string, port int64) bool
}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain. admits reports whether the hosts of a capability allow a host and port; with port 0, whether they
// allow the name on any port.
func New(admits func(hosts []string, host string, port int64) bool) *Domain { return &Domain{admits} }

// Decide answers the syscalls of schema.Net.
func (d *Domain) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.NetConnectInput:
		if in.Refused != "" {
			return kernel.Result{}, fault.NetForbidden.New("pid %d may not connect to %s: %s", call.PID, place(in), in.Refused)
		}
		if !d.admits(call.Token.Hosts(call.Tick), in.Host, in.Port) {
			return kernel.Result{}, fault.NetForbidden.New(`pid %d may not connect to %s: allow it too with "pwos cap grant %d --add Http.Fetch --host %s"`,
				call.PID, place(in), d.lacking(call, in), pattern(in))
		}
		return kernel.Begin(in), nil
	case *schema.NetRequestInput:
		switch {
		case !call.Token.AllowsUpstream(in.Upstream, call.Tick):
			return kernel.Result{}, fault.UpstreamForbidden.New(`pid %d may not use the upstream %s: allow it too with "pwos cap grant %d --add Upstream:%s"`,
				call.PID, in.Upstream, call.Token.UpstreamLacking(call.PID, call.Tick, in.Upstream), in.Upstream)
		case in.Refused != "":
			return kernel.Result{}, fault.UpstreamForbidden.New("pid %d may not send %s %s to the upstream %s: %s", call.PID, in.Method, in.Path, in.Upstream, in.Refused)
		}
		return kernel.Begin(in), nil
	case *schema.EffectEnd:
		data, err := kernel.End(call, in)
		return kernel.Result{Data: data}, err
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

// lacking is the process whose token has to allow the host for the caller to reach it.
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

// pattern is the host as a grant names it. Without a port it stands for 80 and 443.
func pattern(in *schema.NetConnectInput) string {
	if in.Port == 80 || in.Port == 443 {
		return place(&schema.NetConnectInput{Host: in.Host})
	}
	return place(in)
}

// Apply has nothing to change.
func (*Domain) Apply(*kernel.Call) {}

// Snapshot writes nothing.
func (*Domain) Snapshot() func(write func(chunk []byte) error) error {
	return func(func([]byte) error) error { return nil }
}

// Reset has nothing to forget.
func (*Domain) Reset() {}

// Restore refuses every chunk: none was written.
func (*Domain) Restore([]byte) error { return errors.New("restore net domain: it has no state") }
