package schema

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Class is the situation that an error reports; it alone decides the codes that both dialects show (PROTOCOL 3).
type Class uint8

// The situations of PROTOCOL 3, in the order of its table.
const (
	Internal        Class = iota // a handler failed or panicked; the zero Class, so that a forgotten one never says less
	InvalidJSON                  // not JSON, duplicate names, bad UTF-8, too deep
	SchemaViolation              // the envelope does not fit the schema
	LineTooLong                  // a line over the limit
	UnknownSyscall               // no such syscall
	InvalidInput                 // the data does not fit the syscall's schema
	NotFound                     // resource, key or process not there
	Unauthenticated              // not authenticated, or a wrong signature
	Forbidden                    // no capability, expired, not allowed, read-only
	Ended                        // the calling process has ended
	Conflict                     // idempotency key reused for another body, illegal state change
	QuotaExceeded                // quota exceeded, mailbox full
	Upstream                     // upstream failed
	Timeout                      // upstream timed out
	Unavailable                  // shutting down, or the journal cannot be written
	Insufficient                 // pool exhausted, disk full
)

// codes holds what each class becomes on the wire: the HTTP status of OsMessage, the word of OsEvent.
var codes = [...]struct {
	status int
	word   string
}{
	Internal:        {500, "INTERNAL_ERROR"},
	InvalidJSON:     {400, "INVALID_JSON"},
	SchemaViolation: {422, "SCHEMA_VIOLATION"},
	LineTooLong:     {413, "LINE_TOO_LONG"},
	UnknownSyscall:  {404, "NOT_FOUND"},
	InvalidInput:    {422, "INVALID_INPUT"},
	NotFound:        {404, "NOT_FOUND"},
	Unauthenticated: {401, "UNAUTHORIZED"},
	Forbidden:       {403, "UNAUTHORIZED"},
	Ended:           {410, "CONFLICT"},
	Conflict:        {409, "CONFLICT"},
	QuotaExceeded:   {429, "QUOTA_EXCEEDED"},
	Upstream:        {502, "INTERNAL_ERROR"},
	Timeout:         {504, "TIMEOUT"},
	Unavailable:     {503, "UNAVAILABLE"},
	Insufficient:    {507, "INSUFFICIENT_RESOURCES"},
}

// Error is a failure that a client may see (MESSAGE 4.2.6, EVENT 4.2.5). Its message says what to do next; it never
// holds a secret, a stack, or a path outside the runtime directory.
type Error struct {
	Class   Class
	Message string
	Field   string // the member at fault, where there is one: `details.field` of OsEvent
	Cause   *Error // what lies behind it, safe to show as well
}

// Errorf returns an error of the given class.
func Errorf(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...)}
}

// violation is an envelope fault at the named member (PROTOCOL 3: the message begins "Schema validation failed:").
func violation(field, format string, args ...any) *Error {
	return &Error{Class: SchemaViolation, Field: field, Message: "Schema validation failed: " + fmt.Sprintf(format, args...)}
}

// clip shortens what a client wrote for the message that repeats it: an answer must fit a line.
func clip(s string) string {
	const most = 256 // bytes
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Error returns the message followed by the messages of its causes.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	if e.Cause == nil {
		return nil
	}
	return e.Cause
}

// Denied reports whether the error is a refusal: the caller is not known, or has no capability or no quota for the call (CAP 6).
func (e *Error) Denied() bool {
	return e.Class == Unauthenticated || e.Class == Forbidden || e.Class == QuotaExceeded
}

// Code returns the HTTP status code that OsMessage shows, 400 to 599.
func (e *Error) Code() int { return codes[e.Class].status }

// EventCode returns the word that OsEvent shows (EVENT 4.7.3).
func (e *Error) EventCode() string { return codes[e.Class].word }

// AsError returns err as one that may be shown: the *Error in its chain, or a bare Internal that tells a client nothing
// of what err says, since nobody made that text for a client.
func AsError(err error) *Error {
	if shown, ok := errors.AsType[*Error](err); ok {
		return shown
	}
	return &Error{Class: Internal, Message: "internal error: see the kernel's log"}
}
