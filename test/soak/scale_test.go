package soak_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// many returns how many keys the scale test sets: PWOS_LONG=1 sets a million, and then half a million more.
func many() int {
	return testkit.Rounds(5_000, 5_000, 1_000_000)
}

// TestScale sets very many keys and starts the real daemon with them: after an orderly stop, after kill -9, and without the
// files of the projections. It checks each time that every key is there. It logs times and sizes, and checks only what does
// not depend on the machine.
func TestScale(t *testing.T) {
	beside(t)
	p := newPlace(t)
	d := p.launch(t)
	n := many()
	empty := d.footprint(t, 0).memory
	p.load(t, 0, n)
	t.Logf("%d bytes a key of the running daemon", (d.footprint(t, 0).memory-empty)/n)
	d.Stop(t)
	t.Logf("%d bytes of journal a command; projections of %d MB", p.bytes(t, "s/journal")/n, p.bytes(t, "s/projections")>>20)

	for _, start := range []struct {
		after  string
		before func()
		replay func(entries, replayed int) bool
	}{
		{"an orderly end", func() {}, func(_, replayed int) bool { return replayed == 0 }},
		{"kill -9", func() {
			d = p.launch(t)
			p.load(t, 0, 1)
			d.Kill(t)
		}, func(entries, replayed int) bool { return replayed > 0 && replayed < entries }},
		{
			"an orderly end, without projections", func() { p.remove(t, "s/projections") },
			func(entries, replayed int) bool { return replayed == entries },
		},
	} {
		start.before()
		begun := time.Now()
		d = p.launch(t)
		p.has(t, n-1)
		t.Logf("after %s: %v to the first reply", start.after, time.Since(begun).Round(time.Millisecond))
		for k := 0; k < n; k += max(1, n/1000) {
			p.has(t, k)
		}
		t.Logf("%d bytes a key", (d.footprint(t, 0).memory-empty)/n)
		d.Stop(t)
		if entries, replayed := d.replayed(t); !start.replay(entries, replayed) {
			t.Errorf("after %s: %d of %d entries were replayed", start.after, replayed, entries)
		}
	}

	d = p.launch(t)
	before := d.footprint(t, 0).memory
	p.load(t, n, n+n/2)
	t.Logf("half as many again: %d bytes a key", (d.footprint(t, 0).memory-before)/(n/2))
	d.Stop(t)
}

// replayed returns, from the log of a stopped daemon's start, how many entries the journal had and how many were read.
func (d *program) replayed(t *testing.T) (entries, replayed int) {
	t.Helper()
	match := regexp.MustCompile(`"entries":(\d+),"replayed":(\d+)`).FindStringSubmatch(d.Output())
	if match == nil {
		t.Fatalf("the log does not mention the journal:\n%s", d.Output())
	}
	if _, err := fmt.Sscan(match[1]+" "+match[2], &entries, &replayed); err != nil {
		t.Fatal(err)
	}
	return entries, replayed
}

// value returns the value of a key, of about a hundred bytes.
func value(k int) string { return fmt.Sprintf("%d %s", k, strings.Repeat("all work and no play ", 4)) }

// load sets a range of keys on one connection.
func (p *place) load(t *testing.T, from, to int) {
	t.Helper()
	c, err := p.dial()
	testkit.Must(t, err)
	begun := time.Now()
	for k := from; k < to && err == nil; k++ {
		if c.ask(0, "Memory.Set", fmt.Sprintf(`{"key":"notes/%d","value":%q}`, k, value(k))); k%100 == 99 || k == to-1 {
			_, err = c.flush()
		}
		if k%10_000 == 0 {
			err = c.SetDeadline(time.Now().Add(testkit.Patience))
		}
	}
	testkit.Must(t, c.end(err))
	if to-from > 1 {
		t.Logf("%d keys set in %v", to-from, time.Since(begun).Round(time.Millisecond))
	}
}

// has reads a key and checks its value.
func (p *place) has(t *testing.T, k int) {
	t.Helper()
	c, err := p.dial()
	testkit.Must(t, err)
	var got string
	if err := c.end(c.call("Memory.Get", fmt.Sprintf(`{"key":"notes/%d"}`, k), &got)); err != nil || got != value(k) {
		t.Fatalf("key %d is %q, %v", k, got, err)
	}
}

// bytes returns the size of the files that match the pattern, and of those below them.
func (p *place) bytes(t *testing.T, pattern string) int {
	t.Helper()
	names, err := filepath.Glob(p.Path(pattern))
	testkit.Must(t, err)
	sum := 0
	for _, name := range names {
		err = filepath.WalkDir(name, func(_ string, entry fs.DirEntry, err error) error {
			var info fs.FileInfo
			if err == nil && !entry.IsDir() {
				if info, err = entry.Info(); err == nil {
					sum += int(info.Size())
				}
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a temporary file
			}
			return err
		})
		testkit.Must(t, err)
	}
	return sum
}

func (p *place) remove(t *testing.T, pattern string) {
	t.Helper()
	names, err := filepath.Glob(p.Path(pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	for _, name := range names {
		testkit.Must(t, os.RemoveAll(name))
	}
}
