package cluster

import "strings"

// Names on the bus. What a kernel may publish and subscribe to follows from its name (bus.Permissions).
const (
	streamPrefix  = "pwos-journal-"
	journalPrefix = "pwos.journal."
	requestPrefix = "pwos.request."
)

// Stream returns the name of the stream with the journal of a kernel.
func Stream(kernel string) string { return streamPrefix + kernel }

// JournalSubject returns the subject that a kernel publishes its journal to.
func JournalSubject(kernel string) string { return journalPrefix + kernel }

// LeaseSubject returns the subject that the host that leads a kernel publishes its lease to.
func LeaseSubject(kernel string) string { return "$KV." + LeaseBucket(kernel) + "." + leaseKey }

// RequestSubject returns the subject of requests to a kernel.
func RequestSubject(kernel string) string { return requestPrefix + kernel }

// What a kernel asks the bus to make: the stream of its journal, and the bucket of its lease. It may make none itself, since it could
// choose any settings: the subject of another kernel's stream, or that what it publishes is published again there.
const (
	makePrefix = "pwos.make."
	makeStream = "stream"
	makeLease  = "lease"
)

// MakeSubject is the subject at which a kernel asks the bus for a stream. what and kernel may be "*", which MakeOf then reads.
func MakeSubject(what, kernel string) string { return makePrefix + what + "." + kernel }

// MakeOf is the inverse of MakeSubject.
func MakeOf(subject string) (what, kernel string) {
	what, kernel, _ = strings.Cut(strings.TrimPrefix(subject, makePrefix), ".")
	return what, kernel
}

const inboxes = "_INBOX_"

// InboxPrefix returns the prefix of the subjects at which a kernel receives answers. No other kernel may subscribe to them.
func InboxPrefix(kernel string) string { return inboxes + kernel }

// isInbox reports whether a subject is an inbox of a kernel. The sender of a request chooses the subject of the answer, and
// this kernel may publish to its own stream and lease, so it answers only to inboxes.
func isInbox(subject string) bool { return strings.HasPrefix(subject, inboxes) }
