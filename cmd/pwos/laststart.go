package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// withLastStart adds to an error that no kernel runs how the last one that a client started has failed, if it has.
func (a *app) withLastStart(err error) error {
	if !errors.Is(err, fault.DaemonNotRunning) {
		return err
	}
	options, wrong := a.options()
	if wrong != nil {
		return err
	}
	lines, path := client.LogTail(options)
	if last := lastFailure(lines); last != "" {
		return fmt.Errorf("%w; %s; its log is %s", err, last, path)
	}
	return err
}

// lastFailure says from the last lines of the log how the last daemon has failed; "" where it has not, or does not say. The
// reason is in the line about its end, or, where it did not even know what its log is to be, behind its name.
func lastFailure(lines []string) string {
	const start, run = "the last start failed: ", "the last one ended with an error: "
	why := ""
	for _, line := range slices.Backward(lines) {
		message, reason := logLine(line)
		switch {
		case why != "" && message == "ready":
			return run + why
		case why != "" && message == "ended": // that was the one before
			return start + why
		case message == "ended" && reason != "":
			why = escaped(reason)
		case message == "ready" || message == "ended": // killed, or ended in good order
			return ""
		}
	}
	switch {
	case why == "":
		return ""
	case len(lines) < client.LogTailLines: // all that there is
		return start + why
	}
	return run + why
}

// logLine is what a line of the log is about, and the error in it.
func logLine(line string) (message, reason string) {
	if text, ok := strings.CutPrefix(line, "pwosd: "); ok {
		return "ended", text
	}
	if !schema.Valid([]byte(line)) {
		return "", ""
	}
	members, _ := objectOf(schema.Value(line))
	message, _ = textOf(members["message"])
	reason, _ = textOf(members["error"])
	return message, reason
}
