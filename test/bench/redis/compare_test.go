// Package redis_test compares the kernel with Redis, each with every write on disk before it is acknowledged.
//
// If redis-server and redis-benchmark are in PATH,
//
//	PWOS_LONG=1 go test ./test/bench/redis -run TestCompare -v -count=1 -timeout 30m
//
// prints a table. Both serve a Unix socket, on the same file system, in turn, so that a disturbance affects both. Redis
// runs with appendonly yes, appendfsync always and without snapshots. The keys and values are those of test/bench/load. Without
// PWOS_LONG it is one short round, which only shows that everything works.
//
// Each side has its own load generator, test/bench/load and redis-benchmark. They differ in one respect: with 64 in flight
// on one connection, redis-benchmark sends 64 and waits for all, ours sends another one for each answer.
package redis_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/test/bench/load"
)

// work is a load that both get.
type work struct {
	load.Workload

	command []string // of Redis
}

// side is the outcome of a round.
type side struct {
	rate     float64 // answers per second
	p50, p99 time.Duration
}

// TestCompare prints how many answers per second both give. It fails if one does not work, never because of its
// measurements.
func TestCompare(t *testing.T) {
	rounds, duration := 1, 50*time.Millisecond
	if os.Getenv("PWOS_LONG") != "" {
		rounds, duration = 7, time.Second
	}
	r := startRedis(t)
	k := startKernel(t)
	set, get := []string{"SET", "bench/key", "xxx"}, []string{"GET", "bench/key"}
	var all []work
	for _, w := range load.Workloads() {
		switch {
		case strings.HasPrefix(w.Name, "set-"):
			all = append(all, work{w, set})
		case strings.HasPrefix(w.Name, "get-"):
			all = append(all, work{w, get})
		}
	}
	ours, theirs := make([][]side, len(all)), make([][]side, len(all))
	var sync, datasync []side
	for round := range rounds {
		sync = append(sync, syncRate(t, duration, (*os.File).Sync))
		datasync = append(datasync, syncRate(t, duration, syncData))
		for i, w := range all {
			turns := []func(){
				func() { ours[i] = append(ours[i], measure(t, k, w.Workload, duration)) },
				func() { theirs[i] = append(theirs[i], r.bench(t, w, duration)) },
			}
			if round%2 == 1 {
				slices.Reverse(turns)
			}
			for _, turn := range turns {
				turn()
			}
		}
	}
	text := new(strings.Builder)
	out := tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "work\tpwos/s\tlowest\thighest\tredis/s\tlowest\thighest\tratio\tpwos p50\tp99\tredis p50\tp99\t")
	for i, w := range all {
		o, r := median(ours[i]), median(theirs[i])
		fmt.Fprintf(out, "%s\t%s\t%s\t%.2f\t%v\t%v\t%v\t%v\t\n", w.Name, rates(ours[i]), rates(theirs[i]), o.rate/r.rate, o.p50, o.p99, r.p50, r.p99)
	}
	fmt.Fprintf(out, "fsync\t%s\t\t\t\t\t\t\t\t\t\n", rates(sync))
	fmt.Fprintf(out, "fdatasync\t%s\t\t\t\t\t\t\t\t\t\n", rates(datasync))
	testkit.Must(t, out.Flush())
	t.Logf("%d rounds of %v each, medians; %s; fsync and fdatasync: one writer appends %d bytes and syncs\n%s", rounds, duration, r.version, entry, text)
}

// median returns the median round by rate.
func median(all []side) side {
	return slices.SortedFunc(slices.Values(all), func(a, b side) int { return int(a.rate - b.rate) })[len(all)/2]
}

// rates returns three columns of the table.
func rates(all []side) string {
	by := func(a, b side) int { return int(a.rate - b.rate) }
	return fmt.Sprintf("%.0f\t%.0f\t%.0f", median(all).rate, slices.MinFunc(all, by).rate, slices.MaxFunc(all, by).rate)
}
