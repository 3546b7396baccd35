//go:build pwos_clock

package cluster

import (
	"os"
	"strconv"
	"time"
)

// With the build tag pwos_clock, the clock of a lease runs at PWOS_CLOCK percent of the machine's, and is that many hours ahead. So a
// test can have hosts whose clocks differ in processes of their own.
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

// BootClock is the clock of the machine since its start, at another rate.
func BootClock() time.Duration { return bootTime()/100*percent + percent*time.Hour }
