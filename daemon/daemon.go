// Package daemon wires the layers into a running kernel.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cluster/abroad"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/effect/execs"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/effect/jobs"
	"github.com/promptware-os/pwos/effect/network"
	"github.com/promptware-os/pwos/effect/notify"
	"github.com/promptware-os/pwos/effect/prompts"
	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/effect/undo"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/host/programs"
	"github.com/promptware-os/pwos/internal/dirwatch"
	"github.com/promptware-os/pwos/internal/front"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/approval"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/poll"
	"github.com/promptware-os/pwos/transport/systemd"
	"github.com/promptware-os/pwos/transport/unixsock"
	"github.com/promptware-os/pwos/uri"
)

// Grace is how long connections have to finish at a shutdown before they are closed.
const Grace = 10 * time.Second

// Daemon is a kernel with its sockets. Open acquires resources, Run serves, Close releases them. Each is called once; Close
// is called even if Open failed.
type Daemon struct {
	config  config.Config
	log     *slog.Logger
	sockets []systemd.Socket // passed by a service manager

	writable sync.Map // bind.Place by PID: where each program that was started may write
	execs    execs.Keeper
	calls    execs.Calls
	// replace is called with the state machines before the kernel is created.
	replace func(map[schema.Domain]kernel.Domain)

	// locate returns the journal's location.
	locate func(dir string) (journal.Location, error)

	// stopping is called when Run starts to end.
	stopping func()
	standing func()          // called when Open starts to wait as a standby
	grace    time.Duration   // Grace
	patience context.Context // ends with the grace period
	hurry    context.CancelFunc

	lock       *unixsock.Lock
	endpoints  []unixsock.Endpoint
	remote     remote
	doors      unixsock.Keeper // of the endpoints that this daemon has bound
	state      *state.State
	kernel     *actors.Kernel
	keyed      *keyed.Mode // nil in open mode
	ran        bool        // Run was called, and closes the kernel
	once       bool        // serves one call, without sockets
	blobs      *blob.Directory
	networks   *network.Networks
	variables  *access.Variables
	jobs       *jobs.Runner
	promptware *promptware
	policies   *policy.Loader
	prompts    *prompts.Keeper
	trees      *trees.Trees   // nil: this daemon runs no programs
	putting    sync.WaitGroup // of putBack
	undoer     atomic.Pointer[undo.Runner]
	archiver   atomic.Pointer[state.Archiver]
	redactor   atomic.Pointer[state.Redactor]
	cluster    *cluster.Node    // nil: in no cluster
	seen       cluster.Seen     // the lease of the previous leader, if this was its standby
	notifier   *notify.Notifier // nil: no command is run for questions
	reloads    chan struct{}    // requests to read the policy again
	idle       *unixsock.Idle
	programs   *programs.Programs
	conns      atomic.Uint64 // number of the last connection
}

// New returns a daemon with the given settings. It serves on the sockets that a service manager passed, if any.
func New(cfg config.Config, sockets []systemd.Socket, log *slog.Logger) *Daemon {
	d := &Daemon{
		config: cfg, sockets: sockets, log: log, stopping: func() {}, standing: func() {}, grace: Grace,
		replace: func(map[schema.Domain]kernel.Domain) {},
		idle:    unixsock.NewIdle(time.Duration(cfg.IdleTimeout)),
		reloads: make(chan struct{}, 1),
		locate:  journal.Locate,
		doors:   unixsock.Keeper{Log: log, Watch: dirwatch.Open, Inside: insideDir(unixsock.PlacesIn(cfg.RuntimeDir))},
	}
	d.programs = &programs.Programs{Instance: cfg.StateDir, Shim: front.Beside, Veils: filepath.Join(cfg.StateDir, "veils"), Line: cfg.Limits.LineBytes, Log: log}
	d.patience, d.hurry = context.WithCancel(context.Background())
	return d
}

// Open creates the directories, locks the instance, and listens (BRIDGE 4.5.3). Clients may connect afterwards, and are
// answered when Run runs. Its error says what to do. errors.Is(err, ErrRunning) means that another daemon runs.
func (d *Daemon) Open(ctx context.Context) error {
	for _, dir := range []string{d.config.RuntimeDir, d.config.StateDir} {
		if err := unixsock.EnsurePrivateDir(dir); err != nil {
			return err
		}
	}
	places := unixsock.PlacesIn(d.config.RuntimeDir)
	lock, err := unixsock.AcquireInstanceLock(places.Lock)
	if err != nil {
		return running(err)
	}
	d.lock = lock
	if d.config.Cluster.Standby {
		leader, err := newLeader(&d.config, d.log)
		if err != nil {
			return err
		}
		if d.seen, err = leader.StandBy(ctx, d.standing); err != nil {
			return err
		}
	}
	if err := d.listen(ctx, places); err != nil {
		return running(err)
	}
	// Listening probes for another daemon, so it comes first: two daemons must never use the journal at once.
	return d.boot(ctx)
}

// boot creates the kernel from the journal, and releases what a crash left without an owner.
func (d *Daemon) boot(ctx context.Context) error {
	leader, err := newLeader(&d.config, d.log)
	if err != nil {
		return err
	}
	if d.blobs, err = openBlobs(&d.config, d.log); err != nil {
		return err
	}
	if err := d.programs.Look(d.config.Agents.User); err != nil {
		return err
	}
	if err := leader.Rejoin(ctx); err != nil {
		return err
	}
	s, err := state.Open(ctx, &d.config, version.Build(), leader.Key, d.programs.Means, d.log)
	if err != nil {
		return err
	}
	d.state = s
	if err := leader.Deposed(s.Self.Booted()); err != nil {
		s.Journal.Unsign()
		return err
	}
	entries := s.Journal.Written()
	here, err := d.locate(s.Dir)
	if err != nil {
		return err
	}
	if err := s.Begin(&d.config, here); err != nil {
		s.Journal.Unsign()
		return err
	}
	if d.isHeld() {
		d.log.Warn(heldAgents)
	}
	s.Web.Blobs = d.blobs.Store
	if d.promptware, err = newPromptware(&d.config, s, d.programs, d.log); err != nil {
		return err
	}
	forms := policy.Forms{URL: fetch.Normal, Names: state.Names{Space: s.Space, Adopted: s.Processes.Processes()}}
	d.policies = policy.NewLoader(d.config.File, policy.NewGuard(forms, s.Processes.Processes(), s.Self.Registry()), d.log)
	s.Self.SeePolicy(d.policies.Shown)
	s.Self.SeeApproved(d.approvedTool)
	if err := d.joinCluster(leader); err != nil {
		return err
	}
	s.Web.Judge = d.policies.Redirected
	d.replace(s.Domains)
	left := s.Processes.Hosted() // before the kernel owns the state
	if d.once {
		left = nil // the next daemon continues them
	}
	if len(left) > 0 {
		_, err := d.programs.Host() // ends the programs that the previous kernel left running
		if errors.Is(err, host.ErrUnsupported) {
			d.log.Error("programs of agents cannot be restarted", "error", err)
		} else if err != nil {
			return fmt.Errorf("end what the last kernel left running: %w", err)
		}
	}
	d.sweep(s.Processes.Known)
	poller, err := poll.New()
	if err != nil {
		return fmt.Errorf("wait for connections: %w", err)
	}
	unsettled := cluster.Left{Letters: s.Mailboxes().Outbox(), Errands: s.Processes.Errands(), Intents: map[int64]uint64{}} // before the kernel owns the state
	out := abroad.Outgoing{Node: d.cluster}
	last := cmp.Or(s.Self.Booted(), new(schema.BootedInput))
	d.variables = s.Variables
	d.kernel = actors.New(actors.Config{
		Domains: s.Domains, Tokens: s.Tokens, Processes: s.Processes.Processes(), Registry: s.Self.Registry(),
		Journal: s.Journal, Dir: s.Dir, Keys: s.Keys, Metrics: s.Metrics, Budgets: s.Budgets, Restore: s.Restore, Snapshots: s.Snapshots, Made: s.Made,
		SnapshotEvery: uint64(d.config.Journal.SnapshotEvery), SyncEvery: syncEvery(d.config.Journal), Quorum: d.quorum(),
		Origin: d.config.Origin, ReadOrigin: Origin, Tick: s.Tick, Interval: time.Duration(d.config.Clock.Interval), Hosting: d.hosting(),
		Bounds: actors.Bounds{
			InFlightBytes:         d.config.Agents.InFlightBytes,
			JournalBytesPerSecond: d.config.Agents.JournalBytesPerSecond, JournalBurstBytes: d.config.Agents.JournalBurstBytes,
		},
		Gate: kernel.Gate{Policy: d.policies.Stage, Approval: s.Approvals.Stage}, JudgesBodies: d.policies.JudgesBodies, Binds: d.binds, SealVariables: d.variables.SealAll,
		Runners: d.runners(), Begins: out.Begins(), Ends: out.Ends(), Resumes: abroad.Resumes(unsettled), Code: d.runsCode(),
		Poller: poller, Log: d.log, Blobs: d.blobs, Warnings: d.warnings, Instance: last.Instance, Epochs: last.Epochs,
	})
	d.copyJournal()
	if every := syncEvery(d.config.Journal); every > 0 {
		d.log.Warn("journal.sync is interval: a power cut loses the commands that were answered since the last fsync", "interval", every.String())
	}
	d.warnOfOrigins()
	if d.networks, err = newNetworks(&d.config, s, d.kernel, d, d.renewing, d.log); err != nil {
		return err
	}
	d.lookBack()
	d.policies.Begin(d.kernel.Note)
	d.notifier = notify.New(d.config.Approval.Notify, d.config.RuntimeDir, d.log)
	s.Approvals.Serve(approval.Shell{
		Ask: d.kernel.Ask, Repeats: d.kernel.Repeats, Answered: d.answered, Raised: d.notifier.Raised, Wait: time.Duration(d.config.Approval.Wait),
	})
	s.Seal.Wake(func() { d.kernel.WakeUp(schema.Crypto) })
	d.log.Info("state rebuilt from the journal", "entries", entries, "replayed", s.Replayed)
	if d.config.AuthorizedKeys != "" {
		if d.keyed, err = newKeyed(&d.config, s, d.kernel, d.log); err != nil {
			return err
		}
	}
	members := newMembers(&d.config, s, d.kernel)
	d.kernel.Recover(s.Orphans())
	if err := d.serveCluster(members, unsettled); err != nil {
		return err
	}
	if err := d.keepSteps(); err != nil {
		return err
	}
	d.kernel.Rehost(left)
	d.jobs = &jobs.Runner{Jobs: s.Jobs, Kernel: d.kernel, Processes: s.Processes.Processes(), Registry: s.Self.Registry(), OpenVariables: d.variables.OpenAll, Log: d.log.With("component", "jobs")}
	d.jobs.Start()
	d.resumeHeld()
	return nil
}

// Run serves until ctx ends, the kernel is told to end or fails, no connection was open for the idle timeout, or a listener
// fails. It finishes the calls received so far and returns when every goroutine has ended, with the error that ended it.
func (d *Daemon) Run(ctx context.Context) error {
	d.ran = true
	config := unixsock.ServerConfig{
		Endpoints: d.endpoints, Log: d.log,
		Identify: d.programs.Identify, Bounds: bounds(d.config.Agents), Flood: d.programs.Suspend,
		Handler: func(ctx context.Context, conn *unixsock.Conn, peer access.Peer, done func()) {
			d.serve(ctx, conn.Link(), conn.Drain, peer, done)
		},
	}
	if d.keyed != nil {
		config.Authenticator = d.keyed
	}
	server := unixsock.NewServer(config)
	if err := d.serveTLS(server); err != nil {
		return errors.Join(err, d.end())
	}
	served := make(chan error, 1)
	d.idle.Begin()
	defer d.idle.Stop()
	go func() { served <- server.Serve(context.Background()) }()
	defer d.watchSockets(ctx)()

	var reason string
	for reason == "" {
		select {
		case <-d.reloads:
			d.reloadPolicy(ctx)
		case <-ctx.Done():
			reason = "signal"
		case <-d.kernel.Stopping():
			reason = "kernel"
		case <-d.idle.Expired():
			reason = "idle"
		case err := <-served:
			d.hurry()
			_ = d.remote.shutdown(d.patience) // at once, which is no error here
			return errors.Join(err, d.end())
		}
	}
	d.log.Info("shutting down", "reason", reason)
	d.stopping()
	d.jobs.Close()
	d.kernel.StopPrograms(d.patience) // first: programs may be connected, and other calls may wait for them
	grace, cancel := context.WithTimeout(d.patience, d.grace)
	defer cancel()
	remote := make(chan error, 1)
	go func() { remote <- d.remote.shutdown(grace) }()
	if err := cmp.Or(server.Shutdown(grace), <-remote); err != nil {
		d.log.Warn("connections were closed before they had finished", "error", err)
	}
	return errors.Join(<-served, d.end())
}

// end stops the kernel, and saves its state for the next start if it is intact.
func (d *Daemon) end() error {
	d.closeEffects()
	if d.keyed != nil {
		d.keyed.End()
	}
	d.cluster.Silence()
	if err := d.kernel.Close(); err != nil {
		return err
	}
	d.putting.Wait()
	if err := d.kernel.SaveSnapshots(); err != nil {
		d.log.Warn("the next start replays more of the journal", "error", err)
	}
	d.cluster.Drain(d.patience)
	return nil
}

// closeEffects ends the parts that make calls themselves. A part may be missing, and may be closed twice.
func (d *Daemon) closeEffects() {
	d.jobs.Close()
	d.trees.Close()
	d.cluster.Hush()
	d.notifier.Close()
	d.networks.Close()
	d.state.Seal.Close()
}

// Reload makes Run read the policy again, as Policy.Reload does. It does not block, since signal handlers call it.
func (d *Daemon) Reload() {
	select {
	case d.reloads <- struct{}{}:
	default: // one is pending
	}
}

func (d *Daemon) reloadPolicy(ctx context.Context) {
	if _, err := d.kernel.Do(ctx, kernel.Own{Request: schema.PolicyReload.With(&schema.PolicyReloadInput{})}); err != nil {
		d.log.Error("the policy is unchanged", "error", err)
	}
}

// Hurry ends the grace period: connections that have not finished are closed. Before the shutdown, it removes the grace
// period.
func (d *Daemon) Hurry() { d.hurry() }

// serve passes an authenticated connection to the kernel. In open mode its peer is the operator. Otherwise a peer with an
// operator's key is, except for programs of agents (PROTOCOL 4).
func (d *Daemon) serve(ctx context.Context, link actors.Link, drain func(), peer access.Peer, done func()) {
	caller := kernel.Caller{PID: peer.Identity.Agent, Via: "socket", Conn: "c-" + strconv.FormatUint(d.conns.Add(1), 10)}
	if peer.Agent != kernel.Operator {
		caller.PID = peer.Agent
	}
	if peer.Identity.Key != nil {
		caller.Key, caller.Role = peer.Identity.Key.Key.Fingerprint(), peer.Identity.Key.Role
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		drain()
	})
	if key := peer.Identity.Key; key != nil {
		d.log.Info("logged in", "conn", caller.Conn, "key", key.Key.Fingerprint(), "line", key.Line, "pid", caller.PID, "peer", nameOf(peer))
	}
	d.log.Debug("connected", "conn", caller.Conn, "peer", nameOf(peer))
	d.kernel.Serve(link, caller, func() {
		d.log.Debug("disconnected", "conn", caller.Conn)
		if !stop() {
			<-interrupted
		}
		done()
	})
}

// Close removes the sockets and releases the lock. If Run was called, it must have returned.
func (d *Daemon) Close() error {
	d.hurry()
	defer d.programs.Close()
	var err error
	for _, e := range d.endpoints {
		if closeErr := e.Listener.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
			err = errors.Join(err, fmt.Errorf("close listener: %w", closeErr))
		}
	}
	err = errors.Join(err, d.remote.close())
	if d.state != nil {
		if !d.ran {
			d.closeEffects()
			d.cluster.Silence()
			if d.kernel != nil {
				err = errors.Join(err, d.kernel.Close())
			}
		}
		err = errors.Join(err, d.cluster.Close(), d.promptware.close(), d.state.Close())
	}
	if d.blobs != nil {
		err = errors.Join(err, d.blobs.Close())
	}
	if d.keyed != nil {
		err = errors.Join(err, d.keyed.Close())
	}
	if d.endpoints != nil && d.lock != nil {
		err = errors.Join(err, os.RemoveAll(d.doors.Inside))
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Release())
	}
	return err
}

// ErrRunning means that another daemon serves the runtime directory.
var ErrRunning = errors.New("another daemon is running")

// running adds ErrRunning to errors that mean another daemon.
func running(err error) error {
	if errors.Is(err, fault.PlaceLocked) || errors.Is(err, fault.PlaceServed) {
		return fmt.Errorf("%w: %w", ErrRunning, err)
	}
	return err
}

// isHeld reports whether the agents of the previous epoch must not be started.
func (d *Daemon) isHeld() bool { return d.state.Booted.Held }

const heldAgents = "agents of the previous epoch are not started: to start them, shut down the kernel, then run \"pwos restore --here --agents\""

// Origin returns a normalized origin (ABI 6.2). The text may be the path of a root.
func Origin(text string) (string, error) {
	if filepath.IsAbs(text) {
		return text, nil
	}
	return uri.Origin(text, "")
}
