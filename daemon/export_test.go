package daemon

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"time"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// SetDomain replaces a state machine. It must be called before Open.
func (d *Daemon) SetDomain(name schema.Domain, state kernel.Domain) {
	d.replace = func(domains map[schema.Domain]kernel.Domain) { domains[name] = state }
}

// LookAt makes the daemon check its sockets whenever looks has a value, since it cannot watch them. It must be called
// before Run.
func (d *Daemon) LookAt(looks <-chan time.Time) {
	d.doors.Looks = looks
	d.doors.Watch = func([]string) (*os.File, error) { return nil, errors.ErrUnsupported }
}

// NeverLook makes the daemon check its sockets only after a reported change. It must be called before Run.
func (d *Daemon) NeverLook() { d.doors.Looks = make(chan time.Time) }

// OnMachine sets the id of the machine. It must be called before Open.
func (d *Daemon) OnMachine(id string) {
	here := d.locate
	d.locate = func(dir string) (journal.Location, error) {
		l, err := here(dir)
		l.Machine = id
		return l, err
	}
}

// Do makes a call as the operator.
func (d *Daemon) Do(request schema.Request) ([]byte, error) {
	answer, err := d.kernel.Do(context.Background(), kernel.Own{Request: request})
	return answer.Data, err
}

// ServeNetwork serves an agent's sockets.
func (d *Daemon) ServeNetwork(pid int64, s egress.Sockets) (stop func()) {
	return d.ServeNetworkOf(pid, s, nil)
}

// ServeNetworkOf serves the sockets of an agent that has logins of its own.
func (d *Daemon) ServeNetworkOf(pid int64, s egress.Sockets, logins map[string]string) (stop func()) {
	n := d.networks.Needs(context.Background(), pid, logins, func(int) string { return "" })
	return d.networks.Serve(pid, s, egress.Own{Logins: n.Logins})
}

// NetworkNeeds returns what an agent's network needs.
func (d *Daemon) NetworkNeeds(pid int64, upstream func(int) string) (ports []uint16, upstreams []string, env map[string]string, bundle string) {
	n := d.networks.Needs(context.Background(), pid, nil, upstream)
	return n.Ports, n.Upstreams, n.Env, n.Bundle
}

// Resolve replaces the look-up of names. It must be called before Open.
func (d *Daemon) Resolve(r fetch.Resolver) {
	o := fetch.Options{Resolver: r, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	*d.state.Web.Fetcher = *fetch.New(o)
}

// SetGrace sets how long connections have to finish at a shutdown. It must be called before Run.
func (d *Daemon) SetGrace(grace time.Duration) { d.grace = grace }
