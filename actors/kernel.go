package actors

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Config is what a Kernel is made of.
type Config struct {
	Domains map[schema.Domain]kernel.Domain
	Log     *slog.Logger
}

// Kernel is the root of the actors: it starts the domains, serves connections, and takes everything down in order.
type Kernel struct {
	log     *slog.Logger
	system  *actor.ActorSystem
	root    *actor.RootContext
	workers *workers
	domains map[schema.Domain]*actor.PID

	stopping chan struct{} // closed when the kernel is to end
	once     sync.Once
	failure  atomic.Pointer[error] // the first, whoever asked for the end before
}

// New starts the domains. Close ends them.
func New(cfg Config) *Kernel {
	k := &Kernel{
		log:      cfg.Log,
		workers:  newWorkers(),
		domains:  make(map[schema.Domain]*actor.PID, len(cfg.Domains)),
		stopping: make(chan struct{}),
	}
	k.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return cfg.Log.With("component", "actors") }),
		actor.WithDeadLetterRequestLogging(false),
	)
	k.root = k.system.Root.Copy().WithGuardian(&supervisor{kernel: k})
	for name, state := range cfg.Domains {
		d := &domain{kernel: k, state: state, log: cfg.Log.With("domain", string(name))}
		k.domains[name] = k.spawn("domain/"+string(name), d, always)
	}
	return k
}

// spawn starts an actor under the supervisor, to run on the goroutine that posts where inline says so. Names are ours
// and unique, so that a clash is a bug.
func (k *Kernel) spawn(name string, a actor.Actor, inline func(message any) bool) *actor.PID {
	props := actor.PropsFromProducer(func() actor.Actor { return a },
		actor.WithMailbox(newMailbox(inline)), actor.WithDispatcher(k.workers))
	pid, err := k.root.SpawnNamed(props, name)
	if err != nil {
		panic(fmt.Sprintf("spawn actor %s: %v", name, err))
	}
	return pid
}

// Serve runs a connection on the caller's goroutine, until the peer ended its side and every answer is written, or the
// link broke. It does not close the link.
func (k *Kernel) Serve(link Link, caller kernel.Caller) {
	done := make(chan struct{})
	conn := newConnection(k, link, done)
	pid := k.spawn("connection/"+caller.Conn, conn, fromReader)
	r := reader{link: link, caller: caller, credits: conn.credits, root: k.root, self: pid}
	r.run()
	k.root.Send(pid, endOfInput{})
	<-done
	conn.writer.busy.Wait()
}

// Stopping is closed when the kernel is to end: somebody asked for it, or a domain failed.
func (k *Kernel) Stopping() <-chan struct{} { return k.stopping }

// requestShutdown asks for an orderly end; err says why where nobody asked for it.
func (k *Kernel) requestShutdown(err error) {
	if err != nil {
		k.failure.CompareAndSwap(nil, &err)
	}
	k.once.Do(func() { close(k.stopping) })
}

// Close stops the domains once they have handled what was sent to them, and returns what made the kernel fail, if
// anything did. Every Serve must have returned. It must be called once.
func (k *Kernel) Close() error {
	k.requestShutdown(nil)
	var errs []error
	for name, pid := range k.domains {
		if err := k.root.PoisonFuture(pid).Wait(); err != nil {
			errs = append(errs, fmt.Errorf("stop domain %s: %w", name, err))
		}
	}
	k.system.Shutdown()
	k.workers.close()
	if failure := k.failure.Load(); failure != nil {
		errs = append(errs, *failure)
	}
	return errors.Join(errs...)
}
