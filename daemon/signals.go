package daemon

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// onSignals calls first at the first SIGTERM or SIGINT and again at the second; a third finds the system's own handling.
// The returned function ends that and waits until neither is being called.
func onSignals(first, again func()) (stop func()) {
	signals := make(chan os.Signal, 2) // room for both: one that came early is not lost
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for _, act := range []func(){first, again} {
			select {
			case <-signals:
				act()
			case <-done:
				return
			}
		}
		signal.Stop(signals)
	})
	return func() {
		signal.Stop(signals)
		close(done)
		watch.Wait()
	}
}

// onHangup calls reload at each SIGHUP. The returned function ends that, and waits until it is not being called.
func onHangup(reload func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-signals:
				reload()
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(done)
		watch.Wait()
	}
}
