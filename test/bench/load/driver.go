package load

import (
	"bufio"
	"fmt"
	"io"
	"time"
)

// driver is the load on one connection. It keeps a fixed number of messages outstanding: for the answers that one read
// returns, it sends as many new messages with one write.
type driver struct {
	conn        io.ReadWriter
	in          *bufio.Reader
	out         []byte
	frame       frame
	check       check
	outstanding int
	sentAt      []time.Time // of message n at n modulo outstanding

	sent    uint64
	answers uint64
	latency histogram
	err     error
}

func newDriver(conn io.ReadWriter, w Workload, check check) *driver {
	return &driver{
		conn: conn, in: bufio.NewReaderSize(conn, 64<<10), frame: w.frame, check: check,
		outstanding: w.Outstanding, sentAt: make([]time.Time, w.Outstanding),
	}
}

// begin sends the first messages.
func (d *driver) begin() { d.err = d.send(d.outstanding, time.Now()) }

// due reports whether there are answers to wait for. After a failure there are none.
func (d *driver) due() bool { return d.err == nil && d.answers < d.sent }

// step waits for an answer. Until the given time it sends as many new messages as it has received answers.
func (d *driver) step(until time.Time) {
	var came int
	came, d.err = d.receive()
	now := time.Now()
	d.note(came, now)
	if d.err == nil && now.Before(until) {
		d.err = d.send(came, now)
	}
}

func (d *driver) send(count int, now time.Time) error {
	d.out = d.out[:0]
	for range count {
		d.out = d.frame.append(d.out, d.sent)
		d.sentAt[d.sent%uint64(d.outstanding)] = now
		d.sent++
	}
	if _, err := d.conn.Write(d.out); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	return nil
}

// receive waits for an answer, and reads further ones that have arrived with it.
func (d *driver) receive() (came int, err error) {
	for came == 0 || d.in.Buffered() > 0 {
		line, err := d.in.ReadSlice('\n')
		if err != nil {
			return came, fmt.Errorf("read answer: %w", err)
		}
		if n := d.answers + uint64(came); !d.check(line, n) {
			return came, fmt.Errorf("wrong answer to message %d: %s", n, line)
		}
		came++
	}
	return came, nil
}

// note counts answers and records their latencies.
func (d *driver) note(came int, now time.Time) {
	for range came {
		d.latency.add(now.Sub(d.sentAt[d.answers%uint64(d.outstanding)]))
		d.answers++
	}
}
