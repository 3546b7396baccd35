package fault

import (
	"maps"
	"slices"
	"strings"
)

// Kind is the kind of a fault, which determines the codes of both dialects (PROTOCOL 3). It is an error, so
// that errors.Is(err, fault.NotFound) matches all faults of a kind.
type Kind uint8

// The kinds, in the order of the table of PROTOCOL 3. Their numbers are in journals and must not
// change.
const (
	Internal        Kind = iota // a handler failed or panicked; the zero Kind
	InvalidJSON                 // not JSON, duplicate names, bad UTF-8, too deep
	SchemaViolation             // the envelope does not fit the schema
	LineTooLong                 // a line over the limit
	UnknownSyscall              // no such syscall
	InvalidInput                // the data does not fit the syscall's schema
	NotFound                    // resource, key or process not there
	Unauthenticated             // not authenticated, or a wrong signature
	Forbidden                   // no capability, expired, not allowed, read-only
	Ended                       // the calling process has ended
	Conflict                    // idempotency key reused for another body, illegal state change
	QuotaExceeded               // quota exceeded, mailbox full
	Upstream                    // upstream or a handler of user space failed
	Timeout                     // upstream timed out
	Unavailable                 // shutting down, or the journal cannot be written
	Insufficient                // pool exhausted, disk full
	Pending                     // waits for an approval
)

// kinds has the codes of each kind: the HTTP status of OsMessage, the word of OsEvent, and the exit status of a command.
var kinds = [...]struct {
	status int
	word   string
	exit   int
	name   string
}{
	Internal:        {500, "INTERNAL_ERROR", ExitError, "internal error"},
	InvalidJSON:     {400, "INVALID_JSON", ExitError, "invalid JSON"},
	SchemaViolation: {422, "SCHEMA_VIOLATION", ExitError, "schema violation"},
	LineTooLong:     {413, "LINE_TOO_LONG", ExitError, "line too long"},
	UnknownSyscall:  {404, "NOT_FOUND", ExitNotFound, "unknown syscall"},
	InvalidInput:    {422, "INVALID_INPUT", ExitError, "invalid input"},
	NotFound:        {404, "NOT_FOUND", ExitNotFound, "not found"},
	Unauthenticated: {401, "UNAUTHORIZED", ExitDenied, "not authenticated"},
	Forbidden:       {403, "UNAUTHORIZED", ExitDenied, "forbidden"},
	Ended:           {410, "CONFLICT", ExitConflict, "process ended"},
	Conflict:        {409, "CONFLICT", ExitConflict, "conflict"},
	QuotaExceeded:   {429, "QUOTA_EXCEEDED", ExitQuota, "quota exceeded"},
	Upstream:        {502, "INTERNAL_ERROR", ExitError, "upstream failed"},
	Timeout:         {504, "TIMEOUT", ExitUnknown, "timed out"},
	Unavailable:     {503, "UNAVAILABLE", ExitError, "unavailable"},
	Insufficient:    {507, "INSUFFICIENT_RESOURCES", ExitError, "insufficient resources"},
	Pending:         {425, "APPROVAL_PENDING", ExitPending, "approval pending"},
}

// Error returns the name of the kind.
func (k Kind) Error() string { return kinds[k].name }

// Status returns the HTTP status of the kind in OsMessage, 400 to 599.
func (k Kind) Status() int { return kinds[k].status }

// Word returns the code of the kind in OsEvent (EVENT 4.7.3).
func (k Kind) Word() string { return kinds[k].word }

// Valid reports whether k is one of the kinds above.
func (k Kind) Valid() bool { return int(k) < len(kinds) }

// KindOf returns the first kind with the given status, or Internal if there is none.
func KindOf(status int) Kind {
	for k, c := range kinds {
		if c.status == status {
			return Kind(k)
		}
	}
	return Internal
}

// ID is the stable name of an error, domain.reason in lower case. It is never reused or changed. It is an error, so
// that errors.Is(err, fault.MemoryNotFound) matches the faults of an id.
type ID string

// Error returns the id.
func (id ID) Error() string { return string(id) }

// Kind returns the kind of the id, Internal if this kernel does not know it.
func (id ID) Kind() Kind { return entries[id].Kind }

// Domain returns the part before the dot.
func (id ID) Domain() string {
	domain, _, _ := strings.Cut(string(id), ".")
	return domain
}

// Entry is a row of the catalogue.
type Entry struct {
	ID      ID
	Kind    Kind
	Meaning string // general message
	Fix     string // general fix
}

// Catalogue returns every id, sorted.
func Catalogue() []Entry {
	list := make([]Entry, 0, len(entries))
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		e := entries[id]
		e.ID = id
		list = append(list, e)
	}
	return list
}

// Lookup returns the catalogue's row of an id.
func Lookup(id ID) (Entry, bool) {
	e, ok := entries[id]
	e.ID = id
	return e, ok
}
