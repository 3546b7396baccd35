package actors_test

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/actors"
)

// TestWorkersRunAtOnce shows that a job which waits keeps no other from running.
func TestWorkersRunAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const jobs = 100
		workers := actors.NewWorkers()
		var met sync.WaitGroup
		met.Add(jobs)
		for range jobs {
			workers.Schedule(func() {
				met.Done()
				met.Wait() // for all others: who ran them one after the other would wait for ever
			})
		}
		met.Wait()
		workers.Close()
	})
}

// TestWorkersPark shows that the goroutine of a job runs later ones as well.
func TestWorkersPark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		workers := actors.NewWorkers()
		var on []string
		for range 10 {
			workers.Schedule(func() { on = append(on, goroutine()) })
			synctest.Wait()
		}
		workers.Close()
		for _, g := range on {
			if g != on[0] {
				t.Errorf("jobs ran on %q, want one goroutine for all", on)
				break
			}
		}
	})
}

// TestWorkersClose shows that close waits for what runs. The bubble sees to it that no goroutine is left.
func TestWorkersClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		workers := actors.NewWorkers()
		busy, closed := make(chan struct{}), make(chan struct{})
		workers.Schedule(func() { <-busy })
		workers.Schedule(func() {})
		go func() {
			workers.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed while a job runs")
		default:
		}
		close(busy)
		<-closed
	})
}

// TestWorkersGather shows who runs what was gathered: workers, a share each, at the word; a goroutine that is lent meanwhile,
// if there is one job alone.
func TestWorkersGather(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		jobs        int
		lent        bool
		own, others int // goroutines
	}{
		{"nothing", 0, false, 0, 0},
		{"one", 1, false, 0, 1},
		{"a share", actors.Share, false, 0, 1},
		{"several shares", 2*actors.Share + 1, false, 0, 3},
		{"nothing for who is lent", 0, true, 0, 0},
		{"one for who is lent", 1, true, 1, 0},
		{"more than one for who is lent", actors.Share + 1, true, 0, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				workers, caller := actors.NewWorkers(), goroutine()
				var mu sync.Mutex
				ran := make(map[string]int) // jobs by goroutine
				gate := make(chan struct{})
				job := func() {
					mu.Lock()
					ran[goroutine()]++
					mu.Unlock()
					if goroutine() != caller {
						<-gate // so that each share needs a worker of its own
					}
				}
				quiet := func(when string) {
					t.Helper()
					if synctest.Wait(); len(ran) > 0 {
						t.Errorf("jobs ran before %s", when)
					}
				}
				if test.lent {
					workers.Lend()
				}
				for range test.jobs {
					workers.Gather(job)
				}
				quiet("the word")
				workers.RunGathered()
				if test.lent {
					quiet("the lent goroutine came back")
					workers.GiveBack()
				}
				close(gate)
				workers.Close()
				jobs := 0
				for _, n := range ran {
					jobs += n
				}
				if own := ran[caller]; jobs != test.jobs || own != test.own || len(ran)-own != test.others {
					t.Errorf("ran %v, want %d jobs, on the caller's goroutine %d, and on %d others", ran, test.jobs, test.own, test.others)
				}
			})
		})
	}
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	buf := make([]byte, 64)
	name, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(name)
}
