// Package limits_test tests that the effect of one client on the real daemon is bounded. Its memory is read from the
// operating system while clients misbehave; others are served meanwhile.
package limits_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"
)

// TestEndlessLine sends 32 MiB without a newline: the answer is one 413, the line is skipped in constant memory, and the
// next line is served.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	d := start(t)
	before := d.memory(t)

	c := d.dial(t, "kernel.sock")
	junk := bytes.Repeat([]byte("x"), 1<<20)
	for range 32 {
		if _, err := c.Write(junk); err != nil {
			t.Fatal(err)
		}
	}
	c.send("\n" + ping("after", "1"))
	c.expect("", `"code":413,"message":"Message exceeds maximum line length of 16KB"`)
	c.expect("after", `{"payload":1}`)
	grew(t, before, d.memory(t), 8<<20)
}

// TestClientThatNeverReads sends until the kernel stops reading from it. Its memory is that of the window, another client
// is served, and when it reads at last no answer is missing.
func TestClientThatNeverReads(t *testing.T) {
	t.Parallel()
	d := start(t)
	before := d.memory(t)

	deaf := d.dial(t, "kernel.sock")
	payload := `"` + string(bytes.Repeat([]byte("p"), 15<<10)) + `"`
	sent := deaf.sendUntilStuck(func(i int) string { return ping(fmt.Sprint("deaf-", i), payload) })
	if sent < 16 {
		t.Fatalf("stuck after %d frames: the window of 256 KiB holds more", sent)
	}
	// Answers in the window, input in the window, buffers of the reader, and garbage that is not collected yet.
	grew(t, before, d.memory(t), 16<<20)

	other := d.dial(t, "kernel.sock")
	other.send(ping("other", "2"))
	other.expect("other", `{"payload":2}`)

	for i := range sent {
		deaf.expect(fmt.Sprint("deaf-", i), payload)
	}
	if rest, err := io.ReadAll(deaf.lines); err != nil || len(rest) != 0 {
		t.Fatalf("after the last answer: %q, %v", rest, err)
	}
}

// TestConnectionsThatNeverAuthenticate opens 1,000 silent connections: memory stays bounded, and a client of another
// process is admitted.
func TestConnectionsThatNeverAuthenticate(t *testing.T) {
	t.Parallel()
	d := start(t)
	before := d.memory(t)
	for range 1000 {
		d.connect(t, "kernel.sock")
	}
	d.callFromAnotherProcess(t)
	grew(t, before, d.memory(t), 16<<20)
}

// TestIdleConnections measures the memory of a connection that was used once and is idle: less than 10 KB each. Of five
// steps of 1,000 connections the median counts, since in some steps the collector or the index allocates or frees memory
// that does not belong to connections.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	const warm, step, bound = 200, 1000, 10_000
	raiseFileLimit(t, 6000)
	d := start(t)
	open := func(n int) {
		for range n {
			c := d.dial(t, "kernel.sock")
			c.send(ping("idle", "0"))
			c.expect("idle", `{"payload":0}`)
		}
	}
	open(warm)
	var each []int
	for before := d.memory(t); len(each) < 5; {
		open(step)
		after := d.memory(t)
		each = append(each, (after-before)/step)
		before = after
	}
	t.Logf("bytes of an idle connection, in steps of %d: %d", step, each)
	slices.Sort(each)
	if middle := each[len(each)/2]; middle >= bound {
		t.Errorf("an idle connection costs %d bytes, want under %d", middle, bound)
	}
}
