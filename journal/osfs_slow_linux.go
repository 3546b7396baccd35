//go:build pwos_slowdisk

package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// With the build tag pwos_slowdisk, PWOS_SLOWDISK adds a delay to each fsync of the journal, so that a daemon can be
// measured as on a slow disk: "10ms", or "10ms,500ms/64", in which one in 64, at random, takes 500 ms instead.
//
//	go build -tags pwos_slowdisk -o pwosd ./cmd/pwosd && PWOS_SLOWDISK=10ms ./pwosd ...
const slowDiskVariable = "PWOS_SLOWDISK"

// Sync syncs the file, and waits as long as a slow disk takes.
func (f osFile) Sync() error { return errors.Join(f.File.Sync(), slowDown()) }

// Sync syncs the directory, and waits as long as a slow disk takes.
func (l lockedDir) Sync() error { return errors.Join(l.File.Sync(), slowDown()) }

// slowDown waits in a system call, as fsync does: Go's runtime notices a blocked thread only after a while.
func slowDown() error {
	each, err := parseSlowDisk(os.Getenv(slowDiskVariable))
	if err != nil {
		return err
	}
	left := syscall.NsecToTimespec(each().Nanoseconds())
	for {
		if err := syscall.Nanosleep(&left, &left); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// parseSlowDisk parses the variable. It returns a function that returns the delay of one sync.
func parseSlowDisk(s string) (func() time.Duration, error) {
	if s == "" {
		return func() time.Duration { return 0 }, nil
	}
	fail := func() (func() time.Duration, error) {
		return nil, fmt.Errorf(`%s=%q is not "10ms" or "10ms,500ms/64"`, slowDiskVariable, s)
	}
	first, second, stalls := strings.Cut(s, ",")
	each, err := time.ParseDuration(first)
	if err != nil || each < 0 {
		return fail()
	}
	if !stalls {
		return func() time.Duration { return each }, nil
	}
	long, count, _ := strings.Cut(second, "/")
	stall, err := time.ParseDuration(long)
	every, notCount := strconv.Atoi(count)
	if err != nil || stall < 0 || notCount != nil || every < 1 {
		return fail()
	}
	return func() time.Duration {
		if rand.IntN(every) == 0 {
			return stall
		}
		return each
	}, nil
}
