//go:build pwos_clock

package cluster

import (
	"os"
	"strconv"
	"time"
)

// With the build tag pwos_clock, the clock of a lease runs at PWOS_CLOCK percent of the machine's rate, and is that many hours ahead.
// Tests use it for hosts whose clocks differ, each in a process of its own.
//
//	go build -tags pwos_clock -o pwosd ./cmd/pwosd

// percent is the rate of the clock.
var percent = func() time.Duration {
	n, err := strconv.Atoi(os.Getenv("PWOS_CLOCK"))
	if err != nil {
		panic("a build with the tag pwos_clock needs PWOS_CLOCK: " + err.Error())
	}
	return time.Duration(n)
}()

// BootClock returns the time since the machine started, at another rate.
func BootClock() time.Duration { return bootTime()/100*percent + percent*time.Hour }
