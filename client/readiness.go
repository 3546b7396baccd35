package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

var (
	// errRunning: the daemon that we started found another one.
	errRunning = errors.New("another daemon is running, or is about to end")
	// errSilent: the daemon that we started ended without a word.
	errSilent = errors.New("it ended before it was ready")
)

// maxReadiness bounds the line that a daemon tells, in bytes.
const maxReadiness = 4 << 10

// awaitReady reads what a starting daemon tells: "READY <pid>", "RUNNING" or "FAILED <reason>", one line. It returns nil
// for the first, errRunning, errSilent, a fault.DaemonLaunch with the reason that it gave, or the cause of ctx's end.
func awaitReady(ctx context.Context, pipe *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) }) // fails when closed: nobody reads
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(pipe, maxReadiness)).ReadString('\n')
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF):
		return errSilent
	case err != nil:
		return fmt.Errorf("read readiness: %w", err)
	}
	word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch word {
	case "READY":
		return nil
	case "RUNNING":
		return errRunning
	case "FAILED":
		return fault.DaemonLaunch.New("%s", rest)
	}
	return fmt.Errorf("it said %q, not that it is ready", strings.TrimSpace(line))
}
