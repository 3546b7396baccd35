package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net"
	"slices"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Config configures a measurement.
type Config struct {
	Kernel   string        // socket path
	Echo     string        // socket path; "": the kernel alone is measured
	Duration time.Duration // of one round of one server
	Rounds   int           // of each server
	Lean     bool          // decode only the first answer of a connection
	// Greet completes the kernel's prologue on a connection. Nil: as in open mode.
	Greet func(context.Context, access.Lines) error
}

// Side is what one server achieved.
type Side struct {
	PerSecond float64       // answers, the median of the rounds
	P50, P99  time.Duration // latency of an answer, over all rounds; accurate to 2 percent
}

// Result is the outcome of one workload. Without an echo, that side is zero.
type Result struct {
	Work   Workload
	Kernel Side
	Echo   Side
}

// Ratio is the number of the kernel's answers divided by the echo's.
func (r Result) Ratio() float64 { return r.Kernel.PerSecond / r.Echo.PerSecond }

// server is one of the servers during a Run.
type server struct {
	connect func(context.Context) (net.Conn, error)
	check   func() check // a fresh one for each connection
	rates   []float64
	latency histogram
}

// Run measures w. It returns an error if a connection fails, if an answer is wrong, or the cause if ctx ends.
func Run(ctx context.Context, w Workload, c Config) (Result, error) {
	kernel := &server{
		connect: func(ctx context.Context) (net.Conn, error) { return dialKernel(ctx, c) },
		check:   func() check { return replied(c.Lean) },
	}
	echo := &server{
		connect: func(ctx context.Context) (net.Conn, error) { return unixsock.Dial(ctx, c.Echo) },
		check:   func() check { return echoed(c.Lean) },
	}
	if err := w.prepare(ctx, kernel); err != nil {
		return Result{}, fmt.Errorf("prepare %s: %w", w.Name, err)
	}
	servers := []*server{kernel, echo}
	if c.Echo == "" {
		servers = servers[:1]
	}
	for range c.Rounds {
		for _, s := range servers {
			if err := s.round(ctx, w, c.Duration); err != nil {
				return Result{}, fmt.Errorf("measure %s: %w", w.Name, err)
			}
		}
		slices.Reverse(servers)
	}
	return Result{Work: w, Kernel: kernel.side(), Echo: echo.side()}, nil
}

// prepare sends the kernel the setup of the workload.
func (w Workload) prepare(ctx context.Context, kernel *server) error {
	if w.before.line == nil {
		return nil
	}
	once := &server{connect: kernel.connect, check: kernel.check} // its figures are not reported
	return once.round(ctx, Workload{Connections: 1, Outstanding: 1, frame: w.before}, 0)
}

// dialKernel connects and completes the prologue. The kernel then sends only answers, so the prologue's reader can be
// dropped.
func dialKernel(ctx context.Context, c Config) (net.Conn, error) {
	nc, err := unixsock.Dial(ctx, c.Kernel)
	if err != nil {
		return nil, err
	}
	conn, err := unixsock.NewConn(nc, schema.OsMessage, schema.MaxLine)
	switch {
	case err != nil:
	case c.Greet != nil:
		err = c.Greet(ctx, conn)
	default:
		err = access.ClientPrologue(ctx, conn, access.AnswerOpen)
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return nc, nil
}

// round opens the connections, runs them concurrently for the given time, and records the rate.
func (s *server) round(ctx context.Context, w Workload, duration time.Duration) (err error) {
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			if closeErr := conn.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
				err = errors.Join(err, closeErr)
			}
		}
	}()
	for range w.Connections {
		conn, err := s.connect(ctx)
		if err != nil {
			return err
		}
		conns = append(conns, conn)
	}
	begin := time.Now()
	drivers, err := drive(ctx, conns, w, s.check, begin.Add(duration))
	elapsed := time.Since(begin)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	var answers uint64
	for _, d := range drivers {
		if d.err != nil {
			return d.err
		}
		answers += d.answers
		s.latency.merge(&d.latency)
	}
	s.rates = append(s.rates, float64(answers)/elapsed.Seconds())
	return nil
}

func (s *server) side() Side {
	n := len(s.rates)
	if n == 0 {
		return Side{}
	}
	slices.Sort(s.rates)
	return Side{
		PerSecond: (s.rates[n/2] + s.rates[(n-1)/2]) / 2,
		P50:       s.latency.quantile(0.50),
		P99:       s.latency.quantile(0.99),
	}
}

// histogram counts durations in buckets that grow with the duration: each power of two of nanoseconds has 64, so that a
// quantile is accurate to 2 percent. Its size does not depend on the number of durations.
type histogram struct {
	counts [64 * fine]uint64
	total  uint64
}

const (
	fineBits = 6
	fine     = 1 << fineBits
)

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)))]++
	h.total++
}

// bucket is the index of the bucket of n nanoseconds: exact below 64, above by the six bits after the leading one.
func bucket(n uint64) int {
	if n < fine {
		return int(n)
	}
	shift := bits.Len64(n) - fineBits - 1
	return (shift+1)<<fineBits + int(n>>shift) - fine
}

// upper is the largest number of nanoseconds that bucket i counts.
func upper(i int) uint64 {
	if i < fine {
		return uint64(i)
	}
	shift := i>>fineBits - 1
	return uint64(fine+i&(fine-1)+1)<<shift - 1
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile returns the duration that a share q of all does not exceed; 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := max(uint64(math.Ceil(q*float64(h.total))), 1)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return time.Duration(upper(i))
		}
	}
	return 0
}
