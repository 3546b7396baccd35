package soak_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/self"
)

// TestHandlers registers as many syscalls with code as an origin may have, and calls each, before and after starts of the
// real daemon: from a snapshot, after kill -9, and from the journal alone. It logs times and sizes, and checks only what does
// not depend on the machine: that all are there, that one worker does the calls of one caller, and that the daemon's memory is
// within eight times the bound of the code.
func TestHandlers(t *testing.T) {
	beside(t)
	const code = 8 << 10 // bytes of each, so that there is as much code as there may be
	n := testkit.Rounds(self.MaxRegistered/20, self.MaxRegistered/20, self.MaxRegistered)
	p := newPlace(t)
	d := p.launch(t)
	empty := d.footprint(t, 0).memory
	p.each(t, "registered", n, func(c *conn, i int) {
		source := fmt.Sprintf(`/* %s */ export const handler = (i: {a: number}) => ({ sum: i.a + %d })`, strings.Repeat("x", code-200), i)
		c.ask(0, "Syscall.Register", fmt.Sprintf(`{"name":"Many.N%d","kind":"command","input":{"type":"object","required":["a"]},"output":{"type":"object"},"code":%q}`, i, source))
	})
	if n == self.MaxRegistered {
		p.each(t, "one more", 1, func(c *conn, _ int) {
			c.ask(429, "Syscall.Register", `{"name":"Many.More","kind":"command","input":{},"code":"export const handler = () => 1"}`)
		})
	}
	calls := func(when string) {
		p.each(t, "called "+when, n, func(c *conn, i int) { c.ask(0, fmt.Sprintf("Many.N%d", i), `{"a":1}`) })
		workers, memory := d.workers(t)
		now := d.footprint(t, 0)
		t.Logf("the daemon has %d KiB more, %d workers have %d KiB", (now.memory-empty)>>10, workers, memory>>10)
		if workers != 1 || now.memory-empty > 8*code*self.MaxRegistered {
			t.Errorf("%d workers, and %d KiB more of the daemon", workers, (now.memory-empty)>>10)
		}
	}
	calls("at first")
	for _, start := range []struct {
		after  string
		before func()
	}{
		{"an orderly end", func() { d.Stop(t) }},
		{"kill -9", func() { d.Kill(t) }},
		{"an orderly end, without projections", func() {
			d.Stop(t)
			p.remove(t, "s/projections")
		}},
	} {
		start.before()
		begun := time.Now()
		d = p.launch(t)
		p.each(t, "called once", 1, func(c *conn, _ int) { c.ask(0, "Many.N0", `{"a":1}`) })
		t.Logf("after %s: %v to the first answer of a handler", start.after, time.Since(begun).Round(time.Millisecond))
		calls("after " + start.after)
	}
	d.Stop(t)
}

// each queues a call for each of n, sends them a few at a time, and returns how long they took.
func (p *place) each(t *testing.T, what string, n int, line func(c *conn, i int)) {
	t.Helper()
	c, err := p.dial()
	testkit.Must(t, err)
	begun := time.Now()
	for i := 0; i < n && err == nil; i++ {
		if line(c, i); i%10 == 9 || i == n-1 {
			_, err = c.flush()
		}
	}
	if err = c.end(err); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d %s: %v each", n, what, (time.Since(begun) / time.Duration(n)).Round(time.Microsecond))
}

// workers returns the number of processes that run handlers for the daemon, and their resident bytes.
func (d *program) workers(t *testing.T) (n, memory int) {
	t.Helper()
	of := strconv.Itoa(d.PID())
	all, err := filepath.Glob("/proc/[0-9]*/status")
	testkit.Must(t, err)
	for _, at := range all {
		status, _ := os.ReadFile(at) // one that has ended has none
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(at), "cmdline"))
		_, init, _ := strings.Cut(string(status), "\nPPid:\t")
		init, _, _ = strings.Cut(init, "\n")
		above, _ := os.ReadFile(filepath.Join("/proc", init, "status"))
		if !bytes.Contains(command, []byte("pwos-code-worker")) || !strings.Contains(string(above), "\nPPid:\t"+of+"\n") {
			continue
		}
		n++
		_, rest, _ := strings.Cut(string(status), "\nVmRSS:")
		rest, _, _ = strings.Cut(rest, "kB")
		size, err := strconv.Atoi(strings.TrimSpace(rest))
		testkit.Must(t, err)
		memory += size << 10
	}
	return n, memory
}
