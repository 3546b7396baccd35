package schema

import (
	"fmt"

	"github.com/promptware-os/pwos/schema/fault"
)

// Error and the rest stand for their counterparts in package fault.
type (
	Error = fault.Fault
	Class = fault.Kind
)

const (
	Internal        = fault.Internal
	InvalidJSON     = fault.InvalidJSON
	SchemaViolation = fault.SchemaViolation
	LineTooLong     = fault.LineTooLong
	UnknownSyscall  = fault.UnknownSyscall
	InvalidInput    = fault.InvalidInput
	NotFound        = fault.NotFound
	Unauthenticated = fault.Unauthenticated
	Forbidden       = fault.Forbidden
	Ended           = fault.Ended
	Conflict        = fault.Conflict
	QuotaExceeded   = fault.QuotaExceeded
	Upstream        = fault.Upstream
	Timeout         = fault.Timeout
	Unavailable     = fault.Unavailable
	Insufficient    = fault.Insufficient
)

// Errorf returns an error of the given class, without an id.
func Errorf(class Class, format string, args ...any) *Error {
	return &Error{Kind: class, Message: fmt.Sprintf(format, args...)}
}

// AsError is fault.Of.
func AsError(err error) *Error { return fault.Of(err) }

// ClassOf is fault.KindOf.
func ClassOf(status int) Class { return fault.KindOf(status) }

// violation is an envelope fault at the named member (PROTOCOL 3: the message begins "Schema validation failed:").
func violation(field, format string, args ...any) *Error {
	return fault.WireSchema.New("Schema validation failed: "+format, args...).At(field)
}
