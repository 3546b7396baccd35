package redis_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// redis is a server of this test, in a separate directory.
type redis struct {
	socket  string
	version string
	rates   map[string]float64 // of the previous round, by work, to compute the number of requests for a given time
}

func startRedis(t *testing.T) *redis {
	t.Helper()
	for _, program := range []string{"redis-server", "redis-benchmark"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("nothing to compare with: %v", err)
		}
	}
	version, err := exec.Command("redis-server", "--version").Output()
	testkit.Must(t, err)
	dir := testkit.Dir(t)
	r := &redis{socket: filepath.Join(dir, "redis.sock"), version: strings.TrimSpace(string(version)), rates: make(map[string]float64)}
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", r.socket, "--dir", dir, "--daemonize", "no",
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--auto-aof-rewrite-percentage", "0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	for limit := time.Now().Add(testkit.Patience); ; <-time.After(10 * time.Millisecond) {
		if conn, err := net.Dial("unix", r.socket); err == nil {
			_ = conn.Close()
			return r
		}
		if time.Now().After(limit) {
			t.Fatalf("redis-server does not listen:\n%s", said.String())
		}
	}
}

// bench runs redis-benchmark for about that time, based on the rate of the previous round.
func (r *redis) bench(t *testing.T, w work, duration time.Duration) side {
	t.Helper()
	count := max(int(r.rates[w.Name]*duration.Seconds()), 200)
	args := append([]string{
		"-s", r.socket, "-c", strconv.Itoa(w.Connections), "-P", strconv.Itoa(w.Outstanding), "-n", strconv.Itoa(count), "--csv", "--precision", "3",
	}, w.command...)
	var said bytes.Buffer
	cmd := exec.Command("redis-benchmark", args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("redis-benchmark: %v\n%s%s", err, out, said.String())
	}
	got, err := readCSV(string(out))
	if err != nil {
		t.Fatalf("redis-benchmark: %v\n%s", err, out)
	}
	first := r.rates[w.Name] == 0
	r.rates[w.Name] = got.rate
	if first && duration >= time.Second {
		return r.bench(t, w, duration) // too few requests to measure anything
	}
	return got
}

// readCSV reads the one row below the heading.
func readCSV(text string) (side, error) {
	var s side
	if at := strings.Index(text, `"test"`); at > 0 {
		text = text[at:] // after a warning
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 2 {
		return s, fmt.Errorf("%d rows, want a heading and one row: %w", len(rows), err)
	}
	milliseconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	for i, name := range rows[0] {
		v, err := strconv.ParseFloat(rows[1][i], 64)
		switch {
		case name == "test":
		case err != nil:
			return s, err
		case name == "rps":
			s.rate = v
		case name == "p50_latency_ms":
			s.p50 = milliseconds(v)
		case name == "p99_latency_ms":
			s.p99 = milliseconds(v)
		}
	}
	if s.rate <= 0 {
		return s, fmt.Errorf("no rate")
	}
	return s, nil
}
