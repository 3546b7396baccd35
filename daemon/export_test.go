package daemon

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/approval"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// SetDomain puts a state machine in the place of the real one; Open comes after it.
func (d *Daemon) SetDomain(name schema.Domain, state kernel.Domain) {
	d.replace = func(domains map[schema.Domain]kernel.Domain) { domains[name] = state }
}

// LookAt has the daemon look at its sockets whenever something comes from looks, since it cannot watch them; Run comes after it.
func (d *Daemon) LookAt(looks <-chan time.Time) {
	d.looks = looks
	d.watchDirs = func([]string) (*os.File, error) { return nil, errors.ErrUnsupported }
}

// NeverLook has the daemon look at its sockets only when it is told of a change; Run comes after it.
func (d *Daemon) NeverLook() { d.looks = make(chan time.Time) }

// Channel is a program's connection.
type Channel = channel

// NewChannel makes the connection of a program that has ended when gone is closed. watched waits for what it starts.
func NewChannel(conn *unixsock.Conn, gone <-chan struct{}, watched *sync.WaitGroup) *Channel {
	return newChannel(conn, gone, watched)
}

// Refusals is what records refused logins.
type Refusals struct{ refusals }

// NewRefusals hands each record to note.
func NewRefusals(log *slog.Logger, note func(schema.Request)) *Refusals {
	return &Refusals{refusals{log: log, note: note}}
}

// Refused and Close reach its methods.
func (r *Refusals) Refused(one *schema.LoginFailedInput) { r.refused(one) }
func (r *Refusals) Close()                               { r.close() }

// OnMachine has the daemon take itself to be on the machine of that number; Open comes after it.
func (d *Daemon) OnMachine(id string) {
	here := d.locate
	d.locate = func(dir string) (location, error) {
		l, err := here(dir)
		l.machine = id
		return l, err
	}
}

// Differs says in what one location, of a machine and a directory, is another than the next.
func Differs(machine, directory, oldMachine, oldDirectory string) string {
	return location{machine, directory}.differs(oldMachine, oldDirectory)
}

// Do makes a call as the operator.
func (d *Daemon) Do(request schema.Request) ([]byte, error) { return d.kernel.Do("", request) }

// ServeNetwork serves an agent's sockets.
func (d *Daemon) ServeNetwork(pid int64, s egress.Sockets) (stop func()) {
	return d.networks.serve(pid, s)
}

// NetworkNeeds says what an agent's network needs.
func (d *Daemon) NetworkNeeds(pid int64, upstream func(int) string) (ports []uint16, upstreams []string, env map[string]string, bundle string) {
	n := d.networks.needs(pid, upstream)
	return n.ports, n.upstreams, n.env, n.bundle
}

// Resolve has names looked up elsewhere; Open comes before it.
func (d *Daemon) Resolve(r fetch.Resolver) {
	o := fetch.Options{Resolver: r, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	*d.state.web.Fetcher = *fetch.New(o)
}

// Notifier runs a command for questions.
func Notifier(command []string, runtimeDir string, log *slog.Logger) (raised func(*approval.Approval), end func()) {
	n := newNotifier(command, runtimeDir, log)
	return n.raised, n.close
}
