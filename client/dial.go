package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// dialer is the state of one call of Dial.
type dialer struct {
	options Options
	route   route
	places  Places // of a kernel on this machine
	login   *login
	started *Daemon // that this call started, until a connection to it succeeds
	last    error   // of the latest attempt: reported when patience runs out
}

// Dial connects to the kernel that o names and runs the prologue (BRIDGE 4.5.2). If no kernel runs and o.Spawn is set,
// it starts one first. It returns a fault.DaemonUnreachable, a fault.AuthLogin, or the cause of ctx's end.
func Dial(ctx context.Context, o Options) (*Client, error) {
	d := &dialer{options: o, route: o.route(), places: o.places()}
	spent := noAnswer(o.patience())
	patient := newPatience(ctx, o.patience(), spent)
	defer patient.done()
	d.login = &login{keys: o.Keys, route: d.route, rest: patient.rest}

	c, err := backoff.Retry(patient,
		func() (*Client, error) {
			c, err := d.attempt(patient)
			if err != nil && patient.Err() == nil {
				d.last = err
			}
			return c, err
		},
		backoff.WithBackOff(pace()), backoff.WithMaxElapsedTime(0)) // patient ends it
	err = d.release(err)
	switch {
	case err == nil:
		d.login.rest = nil
		c.origin, c.kernel = o.Origin, o.Kernel
		return c, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fault.AuthLogin):
		return nil, err
	case patient.Err() == nil || errors.Is(err, fault.DaemonLaunch):
		// err is complete
	case d.last != nil:
		err = fmt.Errorf("%w: %w", spent, d.last)
	default:
		err = spent
	}
	return nil, unreachable(d.route, err)
}

// pace is the pause between attempts while a daemon ends or another client starts one.
func pace() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     2 * time.Millisecond,
		RandomizationFactor: 0.5,
		Multiplier:          1.5,
		MaxInterval:         50 * time.Millisecond,
	}
}

// attempt connects once, or starts a daemon and connects to it. An error is permanent unless a further attempt can
// succeed.
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

// judge marks err as permanent unless it is temporary: another client is starting a daemon, a daemon that ends closed
// the connection before the prologue, or another key is left to offer.
func judge(err error) error {
	if errors.Is(err, fault.AuthLogin) { // even if its cause is temporary, such as a closed ssh-agent
		return backoff.Permanent(err)
	}
	if said := Answered(err); said != nil && said.Kind == fault.Unavailable { // the kernel is shutting down, or too many logins are pending
		return err
	}
	passes := absent(err) || errors.Is(err, fault.PlaceLocked) || errors.Is(err, errLocked) || errors.Is(err, errRunning) ||
		errors.Is(err, errNextKey) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if passes {
		return err
	}
	return backoff.Permanent(err)
}

// spawn starts a daemon, unless another client has started one or is starting one.
func (d *dialer) spawn(ctx context.Context) (c *Client, err error) {
	if err := mayLaunch(); err != nil {
		return nil, err
	}
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
	// The last holder of the lock may have started a daemon after the first attempt.
	if c, err = d.connect(ctx); err == nil || !absent(err) {
		return c, err
	}
	// A daemon would end at once if the instance lock is held.
	if err := unlocked(d.places.Lock); err != nil {
		return nil, err
	}
	daemon, err := startDaemon(ctx, d.options.Spawn, d.places)
	if err != nil {
		return nil, err
	}
	d.started = daemon
	c, err = d.connect(ctx)
	if errors.Is(err, errNextKey) {
		return nil, err
	}
	return c, d.release(err)
}

// release detaches the daemon that was started, if any, or ends it if err is not nil.
func (d *dialer) release(err error) error {
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

// patience is a context with a timeout that can be paused, since typing a passphrase or touching a security key may
// take any time.
type patience struct {
	context.Context
	end context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	since time.Time     // when the timer was started
	left  time.Duration // of the timeout, at since
}

func newPatience(ctx context.Context, limit time.Duration, spent error) *patience {
	p := &patience{since: time.Now(), left: limit}
	p.Context, p.end = context.WithCancelCause(ctx)
	deadline, bounded := ctx.Deadline()
	p.timer = time.AfterFunc(limit, func() {
		if bounded && !deadline.After(time.Now()) {
			return // ctx has ended, and has its own cause
		}
		p.end(spent)
	})
	return p
}

// rest pauses the timeout until resume is called.
func (p *patience) rest() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer.Stop() {
		p.left -= time.Since(p.since)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.since = time.Now()
		p.timer.Reset(max(p.left, 0))
	}
}

// done releases the timer.
func (p *patience) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.end(context.Canceled)
}

var (
	// errRunning means that the started daemon found another one.
	errRunning = errors.New("another daemon is running, or is about to end")
	// errSilent means that the started daemon ended without a readiness line.
	errSilent = errors.New("it ended before it was ready")
)

// maxReadiness bounds the line of a starting daemon, in bytes.
const maxReadiness = 4 << 10

// awaitReady reads the readiness line of a starting daemon: "READY <pid>", "RUNNING" or "FAILED <reason>". It returns
// nil for the first, errRunning, errSilent, a fault.DaemonLaunch with the given reason, or the cause of ctx's end.
func awaitReady(ctx context.Context, pipe *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) }) // fails only on a closed pipe, which is not read
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(pipe, maxReadiness)).ReadString('\n')
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF):
		return errSilent
	case err != nil:
		return fmt.Errorf("read readiness: %w", err)
	}
	word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch word {
	case "READY":
		return nil
	case "RUNNING":
		return errRunning
	case "FAILED":
		return fault.DaemonLaunch.New("%s", rest)
	}
	return fmt.Errorf("it wrote %q instead of READY", strings.TrimSpace(line))
}
