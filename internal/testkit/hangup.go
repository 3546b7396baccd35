package testkit

import (
	"os"
	"os/signal"
	"syscall"
)

// DefaultHangUp has SIGHUP do in programs that tests start what it does by default. They would ignore it, and a test that sends it would
// wait forever, if the tests were started so that they ignore it, as nohup does. The tests themselves still do.
func DefaultHangUp() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // a signal that is handled is not inherited
	}
}
