package main

import (
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// lastFailure returns why the last daemon failed, from the last lines of the log; "" if it did not fail, or if the
// log does not tell. The reason is in the log entry of the daemon's end or, if the daemon failed before its log was configured, in a plain
// line that begins with its name.
func lastFailure(lines []string) string {
	const start, run = "the last start failed: ", "the last one ended with an error: "
	why := ""
	for _, line := range slices.Backward(lines) {
		message, reason := logLine(line)
		switch {
		case why != "" && message == "ready":
			return run + why
		case why != "" && message == "ended": // logged by an earlier daemon
			return start + why
		case message == "ended" && reason != "":
			why = view.Escaped(reason)
		case message == "ready" || message == "ended": // it was killed, or ended cleanly
			return ""
		}
	}
	switch {
	case why == "":
		return ""
	case len(lines) < client.LogTailLines: // this is the whole log
		return start + why
	}
	return run + why
}

// logLine returns the message and the error of a line of the log.
func logLine(line string) (message, reason string) {
	if text, ok := strings.CutPrefix(line, "pwosd: "); ok {
		return "ended", text
	}
	if !schema.Valid([]byte(line)) {
		return "", ""
	}
	members, _ := view.Members(schema.Value(line))
	message, _ = view.Text(members["message"])
	reason, _ = view.Text(members["error"])
	return message, reason
}
