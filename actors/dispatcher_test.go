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

// goroutine names the goroutine that calls it.
func goroutine() string {
	buf := make([]byte, 64)
	name, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(name)
}
