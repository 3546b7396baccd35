package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	cmap "github.com/orcaman/concurrent-map"

	questions "github.com/promptware-os/pwos/kernel/audit"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/effect/refer"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/poll"
)

// Config configures New. The domains already have their state: restored from a snapshot and replayed.
type Config struct {
	Domains       map[schema.Domain]kernel.Domain
	Tokens        kernel.Tokens
	Processes     kernel.Processes
	Registry      kernel.Registry // nil: no syscall is registered
	ProviderTime  time.Duration   // how long a connection may take to answer a call of a syscall that it provides; 0: 30 s
	Journal       *journal.Log
	Dir           string            // of the journal
	Snapshots     *record.Snapshots // nil: none are saved
	SnapshotEvery uint64            // entries between two snapshots
	Quorum        *Quorum           // nil: answers wait only for the disk of this kernel
	SyncEvery     time.Duration     // 0: answer a command when it is on disk; otherwise when it is written, and sync this much later
	Made          uint64            // entry of all snapshots; 0 if they differ, or one is missing
	FS            journal.FS        // file system of Dir; nil: journal.OSFS
	Keys          *idempotency.Keys // idempotency keys of the last 24 hours
	Metrics       *metrics.Metrics  // computed from the whole journal; nil if it is empty
	Budgets       *budget.Ledger    // likewise
	Origin        string            // of the operator and the processes that it spawns
	Gate          kernel.Gate       // the stages that the caller adds: quota, policy, approval; the kernel adds the others
	// ReadOrigin normalizes an origin that the operator chose for a call; nil: it is used unchanged.
	ReadOrigin func(string) (string, error)
	Tick       int64         // at the end of the journal
	Interval   time.Duration // of a tick; 0: only commands advance the clock
	Hosting    Hosting
	Blobs      kernel.Blobs // nil: a value that does not fit a line is an error
	// JudgesBodies reports whether a rule examines the body of a fetch that is given by reference. nil: no rule does.
	JudgesBodies func() bool
	// Binds returns what an approval of a tool's command binds of the files that the command names; nil: nothing, since no rule asks
	// or the tool runs no command. It reads files. nil: no command is bound.
	Binds refer.Binds
	// SealVariables replaces the variables of a program's environment, and its logins, by what the journal has of them, which Hosting.Confine opens. nil:
	// they stay.
	SealVariables func(env map[string]string) error

	Runners map[string]kernel.Runner // by the type of the syscall whose effect they carry out
	// Begins has functions by type of syscall. Each is called with what to do, in the order of the intents, when these are
	// on disk and before the runners run. They must not block.
	Begins map[string]func(do any)
	// Ends has functions by type of syscall. Each is called with what was done, when the command with the outcome was sent:
	// entries that are made afterwards follow the outcome.
	Ends map[string]func(do any)
	// Resumes returns the outcome of an intent of the previous run that has an outcome of its own; without data the outcome
	// comes later, by EndIntent. nil: there are none.
	Resumes  func(*idempotency.Intent) (data []byte, ok bool)
	Code     Code            // checks code that is to be registered; the zero value accepts none
	Bounds   Bounds          // of each agent; the zero value has none
	Poller   poll.Poller     // watches the links; Close closes it; nil: a poller with a goroutine per link
	Warnings func() []string // what the operator should look at; nil: none
	Instance string          // of the kernel, as the last start in the journal says; empty: there is none
	Epochs   []schema.Epoch  // likewise, in which hosts have led
	Log      *slog.Logger
	Manual   bool // for simulations: the kernel only runs in Turn

	// Restore rebuilds the state of a domain from the files on disk.
	Restore func(name schema.Domain, state kernel.Domain) error
}

// New starts the domains. Close ends them.
func New(cfg Config) *Kernel {
	k := &Kernel{
		log:  cfg.Log,
		tree: tree{loop: newLoop(cfg.Poller), domains: make(map[schema.Domain]*actor.PID, len(cfg.Domains))},
		authority: authority{
			tokens: cfg.Tokens, processes: cfg.Processes, registry: cfg.Registry,
			origin: cfg.Origin, gate: cfg.Gate, clock: newClock(cfg.Tick, cfg.Interval),
		},
		ledger: ledger{
			journalDir: cfg.Dir, files: cfg.FS, keys: cfg.Keys, metrics: cfg.Metrics, budgets: cfg.Budgets,
			instance: cfg.Instance, epochs: cfg.Epochs,
		},
		outside:  outside{blobs: cfg.Blobs, hosting: newSharedHost(cfg.Hosting), ended: make(chan struct{})},
		lifetime: lifetime{stopping: make(chan struct{})},
	}
	k.warnings = cfg.Warnings
	k.retries.First, k.retries.Last = firstRetry, 30*time.Second
	if k.metrics == nil {
		k.metrics = metrics.New()
	}
	if k.budgets == nil {
		k.budgets = budget.New()
	}
	k.budgets.Keep()
	k.loop.manual = cfg.Manual
	k.life, k.end = context.WithCancel(context.Background())
	k.states = maps.Clone(cfg.Domains)
	k.states[schema.Audit] = questions.New(newView(k, &cfg), cfg.Processes)
	k.restore = func(name schema.Domain, state kernel.Domain) error {
		if name == schema.Audit {
			return nil // it has no state except for the journal
		}
		return cfg.Restore(name, state)
	}
	k.accounts = newAccounts(cfg.Bounds, k.noteThrottled)
	rights := kernel.Authority{
		Tokens: cfg.Tokens, Processes: cfg.Processes, Registry: cfg.Registry, Origin: cfg.Origin, ReadOrigin: cfg.ReadOrigin, Now: k.clock.now, Reach: k.clock.reach,
	}
	if rights.ReadOrigin == nil {
		rights.ReadOrigin = func(origin string) (string, error) { return origin, nil }
	}
	k.readOrigin = rights.ReadOrigin
	k.providers = provide.New(cfg.ProviderTime, k.ids.next)
	k.gate.Bounds, k.gate.Identity, k.gate.Pause = k.accounts.admit, rights.Identify, rights.Running
	k.gate.Token, k.gate.Tick = rights.Authorize, kernel.NoFutureTick
	k.gate.Budget = k.budget
	k.refers = refer.Reader{Blobs: cfg.Blobs, Origin: k.originOf, JudgesBodies: cfg.JudgesBodies, Binds: cfg.Binds}
	k.code, k.seal = cfg.Code, cfg.SealVariables
	k.runs = newRuns(k, cfg.Runners)
	k.runs.begins, k.runs.ends = cfg.Begins, cfg.Ends
	k.resumes = cfg.Resumes
	oneShard()
	k.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return cfg.Log.With("component", "actors") }),
		actor.WithDeadLetterRequestLogging(false),
	)
	k.root = k.system.Root.Copy().WithGuardian(&supervisor{kernel: k})
	k.loop.root = k.root
	k.loop.begin = k.clock.advance
	k.loop.failed = func(err error) { k.requestShutdown(fmt.Errorf("wait for input: %w", err)) }
	a := newAudit(k, cfg.Journal)
	a.appended.tick, a.written.tick = cfg.Tick, cfg.Tick
	a.snapshots = snapshotting{store: cfg.Snapshots, begun: cfg.Made, every: cfg.SnapshotEvery, due: cfg.Journal.Head().Seq + cfg.SnapshotEvery}
	a.syncEvery, a.quorum = cfg.SyncEvery, newQuorumState(cfg.Quorum, cfg.Journal.Head().Seq)
	k.unled.Store(a.quorum != nil && a.quorum.Leads != nil && !a.quorum.Leads())
	k.auditor = a
	k.audit = k.spawn("domain/"+string(appender), a)
	k.domains[appender] = k.audit
	k.names = slices.Sorted(maps.Keys(k.states))
	for _, name := range k.names {
		state := k.states[name]
		d := &domain{kernel: k, name: name, state: state, log: cfg.Log.With("domain", string(name))}
		k.domains[name] = k.spawn("domain/"+string(name), d)
	}
	k.agents = k.spawn("domain/agents", newAgents(k))
	k.loop.start()
	return k
}

// oneShard is called before the first actor system is made. The actor library keeps the names of actors in 1,024 maps, each of which is
// split into 32 again; those took 10 ms and 2.9 MB of each start.
var oneShard = sync.OnceFunc(func() { cmap.SHARD_COUNT = 1 })

// Recover runs the commands of recovery before the first client is served, starting with the outcomes of effects that the
// journal does not have.
func (k *Kernel) Recover(steps []schema.Request) {
	for _, i := range k.keys.Open() {
		outcome, unknown := idempotency.Outcome{Err: idempotency.Unknown(i.Type)}, true
		if k.resumes != nil {
			if data, ok := k.resumes(&i); ok && data == nil {
				continue
			} else if ok {
				outcome, unknown = idempotency.Outcome{Data: data}, false
			}
		}
		if err := k.settle(&i, outcome, unknown, "recovery"); err != nil {
			k.requestShutdown(fmt.Errorf("recover: %w", err))
			return
		}
	}
	for _, step := range steps {
		s, err := k.step(&kernel.Cause{Conn: "recovery", Origin: k.origin}, step)
		if err != nil {
			k.requestShutdown(fmt.Errorf("recover: %w", err))
			return
		}
		s.mustApply = true
		k.send(s)
		k.await(step.Row.Domain)
	}
}

// Rehost continues the programs of the previous run of the kernel: it records the ends that no kernel saw, and restarts the
// programs whose policy says so. It must be called after Recover.
func (k *Kernel) Rehost(programs []process.Hosted) {
	for _, p := range programs {
		k.root.Send(k.agents, resumed{p})
	}
}

// StopPrograms cancels effects and ends every program. It returns when none of their processes is left and their ends are
// on disk. The end of ctx ends their grace period. No program is started afterwards.
func (k *Kernel) StopPrograms(ctx context.Context) {
	k.ending.Store(true)
	k.runs.end()
	k.root.Send(k.agents, endAll{})
	select {
	case <-k.ended:
	case <-ctx.Done():
		k.root.Send(k.agents, endAll{hurry: true})
		<-k.ended
	}
	k.tasks.Wait()
}

// Close stops the domains and then the audit log, each when it has handled its messages, and returns the error that made
// the kernel fail, if any. All connections must have ended. It must be called once. The journal stays open.
func (k *Kernel) Close() error {
	k.requestShutdown(nil)
	k.StopPrograms(context.Background())
	k.accounts.end()
	k.runs.alive.Wait()
	errs := []error{k.poison(k.agents)}
	for name, pid := range k.domains {
		if name != appender {
			errs = append(errs, k.poison(pid))
		}
	}
	errs = append(errs, k.poison(k.audit))
	k.asking.Wait() // only actors start them, and the actors have stopped
	k.system.Shutdown()
	errs = append(errs, k.loop.close())
	if failure := k.failure.Load(); failure != nil {
		errs = append(errs, *failure)
	}
	return errors.Join(errs...)
}

// SaveSnapshots saves the state of every part, so that the next start has nothing to replay. It may be called after Close
// has returned no error.
func (k *Kernel) SaveSnapshots() error {
	a := k.auditor
	if _, err := a.journal.Sync(); err != nil {
		return fmt.Errorf("save snapshots: %w", err)
	}
	at := a.journal.Head()
	if a.snapshots.store == nil || at.Seq == a.snapshots.begun {
		return nil
	}
	for name, state := range k.states {
		if err := a.snapshots.store.Save(name, at, a.appended.tick, state.Snapshot()); err != nil {
			return err
		}
	}
	if err := a.snapshots.store.Save(record.MetricsPart, at, a.appended.tick, k.metrics.Snapshot()); err != nil {
		return err
	}
	if err := a.snapshots.store.Save(record.BudgetsPart, at, a.appended.tick, k.budgets.Snapshot()); err != nil {
		return err
	}
	return a.snapshots.store.Save(record.KeysPart, at, a.appended.tick, k.keys.Snapshot())
}

func (k *Kernel) poison(pid *actor.PID) error {
	if err := k.root.PoisonFuture(pid).Wait(); err != nil {
		return fmt.Errorf("stop %s: %w", pid.Id, err)
	}
	return nil
}

// supervisor decides what happens after a panic of an actor. After a panic of a connection, only that connection ends. A
// panic of a domain comes from Apply, and its state may be wrong: the kernel ends, and its next start replays the journal.
type supervisor struct{ kernel *Kernel }

var _ actor.SupervisorStrategy = (*supervisor)(nil)

// HandleFailure is called by the library during the panic, so that the stack shows where it happened.
func (s *supervisor) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	s.kernel.log.Error("actor panicked", "actor", child.Id, "panic", reason, "stack", string(debug.Stack()))
	sup.StopChildren(child)
	if strings.HasPrefix(child.Id, "domain/") {
		s.kernel.requestShutdown(fmt.Errorf("run %s: panic: %v", child.Id, reason))
	}
}

// EndIntent journals the outcome of an intent, given by its entry, whose runner left it Unfinished, or that was resumed
// without data. It does nothing if the intent has an outcome.
func (k *Kernel) EndIntent(intent uint64, data []byte, failed *fault.Fault) {
	for _, i := range k.keys.Open() {
		if i.Seq != intent {
			continue
		}
		if err := k.settle(&i, idempotency.Outcome{Data: data, Err: failed}, false, "kernel"); err != nil {
			k.log.Error("outcome not journaled", "type", i.Type, "intent", intent, "error", err)
		}
	}
}

// settle journals the outcome of an intent whose call no longer exists.
func (k *Kernel) settle(i *idempotency.Intent, outcome idempotency.Outcome, unknown bool, conn string) *fault.Fault {
	row, ok := schema.Lookup(i.Type)
	if !ok || row.Outcome == "" {
		return fault.KernelInternal.New("%s has no outcome", i.Type)
	}
	k.keys.Presume(i, outcome)
	end := &schema.EffectEnd{
		Intent: int64(i.Seq), Type: i.Type, Name: i.Name, PID: i.PID, Ran: outcome.Err == nil || begun(outcome.Err), Causation: i.Causation, Unknown: unknown,
		Outcome: schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Data: outcome.Data, Err: outcome.Err}),
	}
	return k.command(&kernel.Cause{Conn: conn, Origin: i.Origin, ID: i.ID, Correlation: i.Correlation}, row.Ended(end))
}

// newView returns the view of the kernel that cfg configures.
func newView(k *Kernel, cfg *Config) view {
	return view{kernel: k, View: &record.View{
		Files: cfg.FS, Dir: cfg.Dir, Journal: cfg.Journal, Snapshots: cfg.Snapshots, Processes: cfg.Processes,
		Gate: &k.gate, Logger: cfg.Log, Look: k.look,
	}}
}
