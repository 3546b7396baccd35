package actors_test

import (
	"bytes"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// tb is what tests and properties have in common.
type tb interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// system is a kernel under test with everything that is connected to it. Whatever a test leaves, its cleanup ends.
type system struct {
	t       tb
	kernel  *actors.Kernel
	log     logBuffer
	clients []*client
	closed  func() error
}

// start runs a kernel of one domain, whose syscalls are all there are.
func start(t tb, domain kernel.Domain) *system { return startWith(t, mount(domain)) }

func startWith(t tb, domains map[schema.Domain]kernel.Domain) *system {
	return startLogging(t, domains, textLog)
}

func startLogging(t tb, domains map[schema.Domain]kernel.Domain, handler func(io.Writer) slog.Handler) *system {
	s := &system{t: t}
	s.kernel = actors.New(actors.Config{Domains: domains, Log: slog.New(handler(&s.log))})
	s.closed = sync.OnceValue(s.kernel.Close)
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
			<-time.After(time.Second) // the library counts dead letters on a goroutine that lives as long
		}
	})
	return s
}

func mount(domain kernel.Domain) map[schema.Domain]kernel.Domain {
	return map[schema.Domain]kernel.Domain{schema.Kernel: domain}
}

func textLog(w io.Writer) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
}

// end has every client close its side, and returns what Close does.
func (s *system) end() error {
	for _, c := range s.clients {
		c.endInput()
	}
	for _, c := range s.clients {
		<-c.done
	}
	return s.closed()
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
	go func() {
		defer close(c.done)
		s.kernel.Serve(l, caller)
	}()
	return c
}

// logBuffer is a log in memory that several goroutines write to.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
