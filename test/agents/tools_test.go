package agents_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// bad is a module that does what its input says.
const bad = `package main

import (
	"io"
	"os"
	"strings"
)

var kept [][]byte

func main() {
	in, _ := io.ReadAll(os.Stdin)
	switch word := strings.Trim(strings.TrimSpace(string(in)), "\""); word {
	case "grow":
		for {
			kept = append(kept, make([]byte, 16<<20))
		}
	case "flood":
		line := []byte(strings.Repeat("x", 1<<16))
		for range 1 << 14 {
			os.Stdout.Write(line)
		}
	case "prose":
		os.Stdout.WriteString("no JSON")
	case "long":
		os.Stdout.WriteString("{\"text\":\"" + strings.Repeat("y", 100_000) + "\"}")
	case "deep":
		os.Stdout.WriteString(strings.Repeat("[", 60) + strings.Repeat("]", 60))
	default:
		os.Stdout.Write(in)
	}
}
`

// module builds a Go program as a module at a path below the place's root.
func (p tree) module(t *testing.T, name, source string) {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/bad\n\ngo 1.24\n"), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-C", dir, "-o", p.Path("root/"+name), ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func badCall(word string) string { return `{"syscall":"os/bad","args":["` + word + `"]}` }

// unhurried gives a tool the time that it and the compiler may need on a busy machine.
const unhurried = "[tools]\ntime = \"5m\"\n"

// With the race detector, compiling a module in Go takes seconds; these are compiled quickly. Both export a memory of one
// page and _start.
const (
	magic   = "\x00asm\x01\x00\x00\x00"
	memory  = "\x05\x03\x01\x00\x01"
	exports = "\x07\x13\x02\x06memory\x02\x00\x06_start\x00" // with the number of its function

	// endless never ends.
	endless = magic +
		"\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + // function 0: func()
		memory + exports + "\x00" +
		"\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b" // loop br 0 end

	// recursing calls itself without end.
	recursing = magic +
		"\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" +
		memory + exports + "\x00" +
		"\x0a\x06\x01\x04\x00\x10\x00\x0b" // call 0
)

// saying returns a module that writes a text of less than 100 bytes.
func saying(text string) string {
	data := "\x10\x00\x00\x00" + string(rune(len(text))) + "\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + text // from 0 on: where it is
	segment := "\x01\x00\x41\x00\x0b" + string(rune(len(data))) + data
	return magic +
		"\x01\x0c\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00" +
		"\x02\x23\x01\x16wasi_snapshot_preview1\x08fd_write\x00\x00" + "\x03\x02\x01\x01" + // function 0, and function 1: func()
		memory + exports + "\x01" +
		"\x0a\x0f\x01\x0d\x00\x41\x01\x41\x00\x41\x01\x41\x08\x10\x00\x1a\x0b" + // fd_write(1, 0, 1, 8)
		"\x0b" + string(rune(len(segment))) + segment
}

// TestToolsAreStopped: whatever a tool does, its call ends within the configured limits and has the reason.
func TestToolsAreStopped(t *testing.T) {
	t.Parallel()
	p := newTree(t, unhurried+"output_bytes = 1000000\n", map[string]string{"recursing": recursing})
	p.module(t, "bad", bad)
	d := p.start(t)
	c := p.dial(t)
	for word, want := range map[string]answer{
		"grow":  {code: 502, text: "the tool failed"},
		"flood": {code: 502, text: "1000000"},
		"prose": {code: 502, text: "not one JSON value"},
		"deep":  {code: 502, text: "nested deeper"},
	} {
		if got := c.try("Syscall.Call", badCall(word)); got.code != want.code || !strings.Contains(got.text, want.text) || !strings.HasPrefix(got.text, "call os:///bad: ") {
			t.Errorf("%s: got %+v, want %+v", word, got, want)
		}
	}
	c.refused(502, "call os:///recursing: the tool failed: module[] function[_start] failed: stack overflow", "Syscall.Call", `{"syscall":"os/recursing"}`)
	// The module can still be used, and a long answer is passed by reference.
	if got := c.call("Syscall.Call", `{"syscall":"os/bad","args":[1,"b",[]]}`); got != `[1,"b",[]]` {
		t.Errorf("got %s", got)
	}
	if got := c.call("Syscall.Call", badCall("long")); !strings.Contains(got, `Ref":{"scheme":"file"`) {
		t.Errorf("got %.100s", got)
	}
	d.End(t, syscall.SIGTERM)

	hurried := newTree(t, "[tools]\ntime = \"500ms\"\n", map[string]string{"endless": endless})
	hurried.start(t)
	hurried.dial(t).refused(504, "call os:///endless: the time limit has passed: 500ms", "Syscall.Call", `{"syscall":"os/endless"}`)
}

// TestOthersAreServedBesideATool: while a tool computes, another client is answered. The latency with and without the tool
// is logged.
func TestOthersAreServedBesideATool(t *testing.T) {
	t.Parallel()
	p := newTree(t, "[tools]\ntime = \"1h\"\n", map[string]string{"endless": endless})
	p.start(t)
	c, other := p.dial(t), p.dial(t)
	rounds := func() (all []time.Duration) {
		for range 100 {
			begin := time.Now()
			other.call("Syscall.Ping", `{"payload":1}`)
			other.call("Memory.Set", `{"key":"a","value":1}`)
			all = append(all, time.Since(begin))
		}
		return all
	}
	t.Logf("without the tool, a Ping and a Memory.Set take %s", spread(rounds()))
	testkit.Must(t, c.send("Syscall.Call", `{"syscall":"os/endless"}`))
	testkit.Eventually(t, "the tool is called", func() bool { return len(p.entries(t, `"syscall":"os/endless"`)) > 0 })
	t.Logf("during the tool's call they take %s", spread(rounds()))
	if ended := p.entries(t, `"uri":"os:///endless"`); len(ended) > 0 {
		t.Errorf("the tool has ended before the measurement: %s", ended)
	}
	testkit.Must(t, c.Conn.Close()) // it also ends the tool
}

// spread describes the distribution of durations.
func spread(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("%v, 99 of 100 at most %v (%d times)", all[len(all)/2], all[len(all)*99/100], len(all))
}

// TestToolsAreRecorded: the journal has the input, the outcome and the digest of what ran, also for a failed call, and can
// be replayed.
func TestToolsAreRecorded(t *testing.T) {
	t.Parallel()
	p := newTree(t, unhurried, map[string]string{"script": "#!/bin/sh\n", "good": saying(`"output-7"`), "bad": saying("no JSON")})
	testkit.Must(t, os.Chmod(p.Path("root/script"), 0o700))
	d := p.start(t)
	c := p.dial(t)
	c.call("Syscall.Call", `{"syscall":"os/good","args":["input-7"]}`)
	c.refused(502, "not one JSON value", "Syscall.Call", `{"syscall":"os/bad"}`)
	c.refused(404, "os:///missing", "Syscall.Call", `{"syscall":"os/missing"}`)
	c.refused(403, "programs are not run here", "Syscall.Call", `{"syscall":"os/script"}`)
	d.End(t, syscall.SIGKILL)
	var intent, ended, failed bool
	for _, line := range p.entries(t, `"type":"Syscall.Call`) {
		digest := func(name string) bool { return strings.Contains(line, `"uri":"os:///`+name+`","digest":"sha256-`) }
		intent = intent || strings.Contains(line, `"type":"Syscall.Call"`) && strings.Contains(line, `"args":["input-7"]`)
		ended = ended || digest("good") && strings.Contains(line, `"outcome":{"kind":"reply","data":"output-7"}`)
		failed = failed || digest("bad") && strings.Contains(line, `"code":502`)
	}
	if !intent || !ended || !failed {
		t.Errorf("intent %v, outcome %v, failure %v", intent, ended, failed)
	}
	p.start(t)
	if got := p.dial(t).call("Audit.Verify", `{}`); member(t, got, "ok") != "true" {
		t.Errorf("got %s", got)
	}
}

// TestToolsEndWithTheirCaller: a tool whose caller has disconnected releases its slot, and one that runs when the kernel is
// told to end does not delay that.
func TestToolsEndWithTheirCaller(t *testing.T) {
	t.Parallel()
	p := newTree(t, "[tools]\ntime = \"1h\"\nat_once = 1\n", map[string]string{"endless": endless, "waited": saying(`"waited"`)})
	d := p.start(t)
	first, second := p.dial(t), p.dial(t)
	testkit.Must(t, first.send("Syscall.Call", `{"syscall":"os/endless"}`))
	testkit.Must(t, second.send("Syscall.Call", `{"syscall":"os/waited"}`))
	testkit.Must(t, first.Conn.Close())
	if got, err := second.receive(); err != nil || got.data != `"waited"` {
		t.Errorf("got %+v, %v", got, err)
	}
	testkit.Must(t, second.send("Syscall.Call", `{"syscall":"os/endless"}`))
	// Calls that are not received before the end are not answered.
	testkit.Eventually(t, "the tool is called again", func() bool { return len(p.entries(t, `"syscall":"os/endless"`)) == 2 })
	d.End(t, syscall.SIGTERM)
	if got, err := second.receive(); err != nil || got.code != 503 {
		t.Errorf("got %+v, %v", got, err)
	}
}
