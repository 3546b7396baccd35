// Package fault defines the error type that clients of the kernel see. A fault has a kind, a stable id for programs, a message and
// a fix. The catalogue lists every id.
//
// A Fault is made from an ID, which fixes its kind; the kind fixes the codes of both dialects (PROTOCOL 3). Programs
// decide by id or kind (errors.Is(err, fault.MemoryNotFound), errors.Is(err, fault.NotFound)); the text is for people
// and may change. Of turns any other error into an Internal one without its text, which only the log has.
package fault

import (
	"errors"
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/internal/clip"
)

// Fault is an error that a client may see (MESSAGE 4.2.6, EVENT 4.2.5). It has no secret, no stack and no path outside
// the runtime directory. It must not be changed after it is returned.
type Fault struct {
	Kind    Kind
	Status  int    // code of a newer kernel's error that no Kind has; else 0
	ID      ID     // empty in an entry of an older journal, and in an error of an older kernel
	Message string // what is wrong
	Fix     string // what to do about it; empty if the message says it
	Field   string // the invalid member of the request: details.field of OsEvent
	Details []Detail
	Cause   *Fault
	Err     error // the internal error, for logs and errors.Is; never shown and never journaled
}

// Detail is a member of details in OsEvent, such as "key": "/notes/123".
type Detail struct{ Name, Value string }

// New returns a fault of the id. The arguments are those of fmt.Sprintf; no cause is wrapped.
func (id ID) New(format string, args ...any) *Fault {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	return &Fault{Kind: id.Kind(), ID: id, Message: message}
}

// WithFix returns f with a fix.
func (f *Fault) WithFix(format string, args ...any) *Fault {
	f.Fix = fmt.Sprintf(format, args...)
	return f
}

// At returns f with the invalid member of the request.
func (f *Fault) At(field string) *Fault {
	f.Field = field
	return f
}

// With returns f with a detail. It replaces a detail with the same name.
func (f *Fault) With(name, value string) *Fault {
	f.Details = slices.DeleteFunc(f.Details, func(d Detail) bool { return d.Name == name })
	f.Details = append(f.Details, Detail{name, value})
	return f
}

// Detail returns the value of a detail, or "" if there is none with that name.
func (f *Fault) Detail(name string) string {
	for _, d := range f.Details {
		if d.Name == name {
			return d.Value
		}
	}
	return ""
}

// Wrap returns f with an internal error, which clients do not see.
func (f *Fault) Wrap(err error) *Fault {
	f.Err = err
	return f
}

// Because returns f with a cause, the fault that Of returns for err.
func (f *Fault) Because(err error) *Fault {
	f.Cause = Of(err)
	return f
}

// Prefix returns err with a formatted text before its own. For a fault, it changes the message that a
// client sees.
func Prefix(err error, format string, args ...any) error {
	about := fmt.Sprintf(format, args...)
	f, ok := errors.AsType[*Fault](err)
	if !ok {
		return fmt.Errorf("%s: %w", about, err)
	}
	prefixed := *f
	prefixed.Message = about + ": " + f.Message
	return &prefixed
}

// Text returns the message with the fix, as in both dialects.
func (f *Fault) Text() string {
	if f.Fix == "" {
		return f.Message
	}
	return f.Message + ": " + f.Fix
}

// Error returns the text, followed by the texts of the causes.
func (f *Fault) Error() string {
	if f.Cause == nil {
		return f.Text()
	}
	return f.Text() + ": " + f.Cause.Error()
}

// Unwrap returns the cause and the internal error.
func (f *Fault) Unwrap() []error {
	var behind []error
	if f.Cause != nil {
		behind = append(behind, f.Cause)
	}
	if f.Err != nil {
		behind = append(behind, f.Err)
	}
	return behind
}

// Is reports whether target is the fault's id or its kind.
func (f *Fault) Is(target error) bool {
	switch target := target.(type) {
	case ID:
		return f.ID == target
	case Kind:
		return f.Kind == target
	}
	return false
}

// Code returns the status that OsMessage shows, 400 to 599.
func (f *Fault) Code() int {
	if f.Status != 0 {
		return f.Status
	}
	return f.Kind.Status()
}

// EventCode returns the word that OsEvent shows (EVENT 4.7.3).
func (f *Fault) EventCode() string { return f.Kind.Word() }

// Denied reports whether the fault is a refusal: the caller is not authenticated, or has no capability or no quota for the call
// (CAP 6).
func (f *Fault) Denied() bool {
	return slices.Contains([]Kind{Unauthenticated, Forbidden, QuotaExceeded}, f.Kind)
}

// Of returns the first fault in the chain of err, or an Internal fault without the text of err if there is none.
func Of(err error) *Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return KernelInternal.New("internal error: see the kernel's log")
}

// Unsafe returns the fault of a path that other users can access or that has an unexpected type. remedy is the fix.
func Unsafe(path, problem, remedy string) *Fault {
	return PlaceUnsafe.New("%s %s", path, problem).WithFix("%s", remedy).With("path", path)
}

// SetID gives a decoded fault its id, and the kind of the id if this kernel knows it and the codes agree.
func (f *Fault) SetID(id ID) {
	f.ID = id
	if e, ok := Lookup(id); ok && e.Kind.Status() == f.Code() {
		f.Kind = e.Kind
	}
}

// Clip shortens text of a client for an error message, because an answer must fit a line.
func Clip(s string) string { return clip.Text(s, 256) }
