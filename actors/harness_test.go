package actors_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// tb is the common part of tests and properties.
type tb interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// system is a kernel under test with everything that is connected to it. Its cleanup ends all that a test leaves.
type system struct {
	t       tb
	kernel  *actors.Kernel
	disk    *faultfs.Disk
	files   *faultfs.Failing
	room    *room
	keys    *idempotency.Keys
	tokens  *tokens
	log     testkit.Buffer
	clients []*client
	stopped func() error // closes the kernel
	closed  func() error // and the journal

	restoring func(schema.Domain) // if set, called before a domain's state is rebuilt
}

// An option of a system is one of these, or the metrics of its disk.
type (
	syncing   time.Duration // answers do not wait for the disk, which is synced this much later
	reserving int64         // reserve of the journal, in bytes
	segments  int64         // maximum length of a segment of the journal, in bytes
	answering time.Duration // how long a provider may take to answer
)

// do makes a call of the kernel itself as the operator, in an origin.
func (s *system) do(origin string, request schema.Request) ([]byte, error) {
	answer, err := s.kernel.Do(context.Background(), kernel.Own{Caller: kernel.Caller{Origin: origin}, Request: request})
	return answer.Data, err
}

// start starts a kernel with one domain, which has all syscalls.
func start(t tb, domain kernel.Domain) *system { return startWith(t, mount(domain)) }

func startWith(t tb, domains map[schema.Domain]kernel.Domain) *system {
	return startLogging(t, domains, textLog)
}

func startLogging(t tb, domains map[schema.Domain]kernel.Domain, handler func(io.Writer) slog.Handler) *system {
	return startOn(t, faultfs.NewDisk(), domains, idempotency.New(), handler)
}

// startOn starts a kernel on a disk, with domains and keys that may have the disk's state.
func startOn(t tb, disk *faultfs.Disk, domains map[schema.Domain]kernel.Domain, keys *idempotency.Keys, handler func(io.Writer) slog.Handler) *system {
	return startHosting(t, disk, domains, keys, handler, actors.Hosting{})
}

// startHosting is startOn with programs that run as hosting says.
func startHosting(t tb, disk *faultfs.Disk, domains map[schema.Domain]kernel.Domain, keys *idempotency.Keys, handler func(io.Writer) slog.Handler, hosting actors.Hosting, options ...any) *system {
	s := &system{t: t, disk: disk, keys: keys}
	s.files = faultfs.NewFailing(s.disk, faultfs.Fault{})
	s.room = &room{FS: s.files}
	var late time.Duration
	var reserve, segment int64
	var counted *metrics.Metrics
	var budgets *budget.Ledger
	var bounds actors.Bounds
	var gate kernel.Gate
	var registry kernel.Registry
	var patience time.Duration
	var blobs kernel.Blobs
	var quorum *actors.Quorum
	var snapshots *record.Snapshots
	var processes kernel.Processes = nobody{}
	for _, o := range options {
		switch o := o.(type) {
		case syncing:
			late = time.Duration(o)
		case reserving:
			reserve = int64(o)
		case segments:
			segment = int64(o)
		case *metrics.Metrics:
			counted = o
		case *budget.Ledger:
			budgets = o
		case kernel.Gate:
			gate = o
		case actors.Bounds:
			bounds = o
		case kernel.Registry:
			registry = o
		case kernel.Processes:
			processes = o
		case *actors.Quorum:
			quorum = o
		case *record.Snapshots:
			snapshots = o
		case kernel.Blobs:
			blobs = o
		case answering:
			patience = time.Duration(o)
		default:
			t.Fatalf("no option is a %T", o)
		}
	}
	record, _, err := journal.Open(journal.Options{Dir: "/journal", FS: s.room, ReserveBytes: reserve, SegmentBytes: segment})
	if err != nil {
		t.Fatalf("open journal: %v", err)
	}
	s.tokens = &tokens{}
	s.kernel = actors.New(actors.Config{
		SyncEvery: late,
		Quorum:    quorum,
		Snapshots: snapshots,
		Bounds:    bounds,
		Gate:      gate,
		Registry:  registry, ProviderTime: patience, Blobs: blobs,
		Runners: runnersOf(domains),
		Domains: domains, Journal: record, Dir: "/journal", FS: s.room, Keys: keys, Metrics: counted, Budgets: budgets, Tokens: s.tokens, Processes: processes,
		Restore: s.restore, Hosting: hosting, Origin: "https://test.local/", Log: slog.New(handler(&s.log)),
	})
	s.stopped = sync.OnceValue(s.kernel.Close)
	s.closed = sync.OnceValue(func() error { return errors.Join(s.stopped(), record.Close()) })
	t.Cleanup(func() {
		for _, d := range domains {
			if f, ok := d.(*fake); ok {
				f.open()
			}
		}
		for _, c := range s.clients {
			_ = c.link.Close()
			<-c.done
		}
		_ = s.closed()
		if strings.Contains(s.log.String(), "[DeadLetter]") {
			<-time.After(time.Second) // the library counts dead letters on a goroutine that lives for a second
		}
	})
	return s
}

// restore rebuilds a domain's state from the disk.
func (s *system) restore(name schema.Domain, d kernel.Domain) error {
	if s.restoring != nil {
		s.restoring(name)
	}
	d.Reset()
	r := journal.NewReader(s.files, "/journal", journal.ReaderOptions{})
	err := record.Replay(context.Background(), r, map[schema.Domain]kernel.Domain{name: d}, nil, func(*kernel.Call) {})
	return errors.Join(err, r.Close())
}

// runnersOf returns the runners of domains under test.
func runnersOf(domains map[schema.Domain]kernel.Domain) map[string]kernel.Runner {
	for _, d := range domains {
		if f, ok := d.(interface {
			run(context.Context, *kernel.Job) ([]byte, error)
		}); ok {
			return map[string]kernel.Runner{"Http.Fetch": f.run}
		}
	}
	return nil
}

// tokens is a view of tokens that tests fill; until they do, every process may do everything.
type tokens struct {
	mu   sync.Mutex
	held map[int64]*kernel.Token
}

func (v *tokens) Token(pid int64) *kernel.Token {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.held == nil {
		return &kernel.Token{Granted: schema.Token{PID: pid, TokenGrant: schema.TokenGrant{AllowedSyscalls: []string{"*"}}}}
	}
	return v.held[pid]
}

// set sets or removes the token of pid.
func (v *tokens) set(pid int64, token *kernel.Token) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held[pid] = token
}

// allowed returns a token of pid for what the patterns name.
func allowed(pid int64, patterns ...string) *kernel.Token {
	return &kernel.Token{Granted: schema.Token{PID: pid, TokenGrant: schema.TokenGrant{AllowedSyscalls: patterns}}}
}

// nobody is a process table without processes.
type nobody struct{}

func (nobody) Process(int64) *schema.Descriptor { return nil }

func mount(domain kernel.Domain) map[schema.Domain]kernel.Domain {
	return map[schema.Domain]kernel.Domain{schema.Kernel: domain}
}

func textLog(w io.Writer) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
}

// end ends the input of every client, and returns the result of Close.
func (s *system) end() error {
	for _, c := range s.clients {
		c.endInput()
	}
	for _, c := range s.clients {
		<-c.done
	}
	return s.closed()
}

// endCleanly is end that must not return an error.
func (s *system) endCleanly() {
	s.t.Helper()
	if err := s.end(); err != nil {
		s.t.Errorf("close kernel: %v", err)
	}
}

// connect serves a connection in the operator's name over a link that takes all output.
func (s *system) connect() *client {
	return s.serve(newLink(schema.OsMessage, schema.MaxLine, unbounded))
}

func (s *system) serve(l *link) *client {
	return s.serveAs(l, kernel.Operator)
}

func (s *system) serveAs(l *link, pid int64) *client {
	c := newClient(s.t, l)
	caller := kernel.Caller{PID: pid, Conn: "c-" + strconv.Itoa(len(s.clients)+1)}
	s.clients = append(s.clients, c)
	s.kernel.Serve(l, caller, func() { close(c.done) })
	return c
}
