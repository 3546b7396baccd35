package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// dialer is one Dial under way.
type dialer struct {
	options Options
	places  unixsock.Places
	login   *login
	started *Daemon // by us, and not released yet: it does not let us in so far
	last    error   // of the latest attempt: what to report when patience runs out
}

// Dial connects to the kernel that o names, starts it first if need be and o says how, and goes through the prologue
// (BRIDGE 4.5.2). It returns a fault.DaemonUnreachable, a fault.AuthLogin, or the cause of ctx's end.
func Dial(ctx context.Context, o Options) (*Client, error) {
	d := &dialer{options: o, places: o.places()}
	spent := noAnswer(o.patience())
	patient := newPatience(ctx, o.patience(), spent)
	defer patient.done()
	d.login = &login{keys: o.Keys, socket: o.socket(), rest: patient.rest}

	c, err := backoff.Retry(patient,
		func() (*Client, error) {
			c, err := d.attempt(patient)
			if err != nil && patient.Err() == nil {
				d.last = err
			}
			return c, err
		},
		backoff.WithBackOff(pace()), backoff.WithMaxElapsedTime(0)) // patient ends it
	err = d.settle(err)
	switch {
	case err == nil:
		d.login.rest = nil
		c.origin = o.Origin
		return c, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fault.AuthLogin):
		return nil, err
	case patient.Err() == nil || errors.Is(err, fault.DaemonLaunch):
		// err says it all
	case d.last != nil:
		err = fmt.Errorf("%w: %w", spent, d.last)
	default:
		err = spent
	}
	return nil, unreachable(o.socket(), err)
}

// pace is how long to wait between attempts. It only paces those who wait for somebody else: a daemon that goes, or a
// client that starts one.
func pace() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     2 * time.Millisecond,
		RandomizationFactor: 0.5,
		Multiplier:          1.5,
		MaxInterval:         50 * time.Millisecond,
	}
}

// attempt connects once, or starts a daemon and connects to it. What another attempt cannot mend is permanent.
func (d *dialer) attempt(ctx context.Context) (*Client, error) {
	c, err := d.connect(ctx)
	switch {
	case err == nil:
		return c, nil
	case !absent(err):
		return nil, judge(err)
	case d.options.Spawn == nil:
		return nil, backoff.Permanent(errNotRunning)
	}
	c, err = d.spawn(ctx)
	if err != nil {
		return nil, judge(err)
	}
	return c, nil
}

// absent reports whether a daemon may be started after err.
func absent(err error) bool {
	return errors.Is(err, unixsock.ErrNoSocket) || errors.Is(err, unixsock.ErrNobodyListens)
}

// judge marks err as permanent unless it is one that passes: somebody else is starting a daemon or is one already, a
// daemon hung up before its prologue, as it does when it is shutting down, or there is another key to show.
func judge(err error) error {
	if errors.Is(err, fault.AuthLogin) { // whatever lies behind it, such as an ssh-agent that hung up
		return backoff.Permanent(err)
	}
	if said := Answered(err); said != nil && said.Kind == fault.Unavailable { // shutting down, or too many wait to log in
		return err
	}
	passes := absent(err) || errors.Is(err, fault.PlaceLocked) || errors.Is(err, errLocked) || errors.Is(err, errRunning) ||
		errors.Is(err, errNextKey) ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if passes {
		return err
	}
	return backoff.Permanent(err)
}

// spawn starts a daemon, unless another client is at it or was faster.
func (d *dialer) spawn(ctx context.Context) (c *Client, err error) {
	if err := unixsock.EnsurePrivateDir(d.places.Dir); err != nil {
		return nil, err
	}
	lock, err := unixsock.AcquireLock(spawnLock(d.places))
	if errors.Is(err, fault.PlaceLocked) {
		return nil, fmt.Errorf("another client is starting a daemon: %w", err)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := lock.Release(); closeErr != nil && err == nil {
			err = errors.Join(closeErr, c.Close())
			c = nil
		}
	}()
	// The last holder may have been done a moment after our first look.
	if c, err = d.connect(ctx); err == nil || !absent(err) {
		return c, err
	}
	// A daemon that would find another one's lock is not worth a process.
	if err := unlocked(d.places.Lock); err != nil {
		return nil, err
	}
	daemon, err := launch(ctx, d.options.Spawn, d.places)
	if err != nil {
		return nil, err
	}
	d.started = daemon
	c, err = d.connect(ctx)
	if errors.Is(err, errNextKey) {
		return nil, err
	}
	return c, d.settle(err)
}

// settle lets go of the daemon that we have started, if we have, and ends it where err says that it was for nothing.
func (d *dialer) settle(err error) error {
	daemon := d.started
	d.started = nil
	switch {
	case daemon == nil:
	case err != nil:
		return errors.Join(err, daemon.abort())
	default:
		daemon.release()
	}
	return err
}
