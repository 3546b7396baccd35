package main

import (
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// respond writes the one JSON-RPC 2.0 response of a call, and returns err, which decides the exit status.
func (a *app) respond(data []byte, err error, fault *schema.Error) error {
	var response []byte
	if fault == nil {
		response = schema.AppendRPCResult(nil, data)
	} else {
		response = schema.AppendRPCError(nil, fault)
	}
	if _, writeErr := a.stdout.Write(response); writeErr != nil {
		return errors.Join(err, fmt.Errorf("write response: %w", writeErr))
	}
	return err
}

// misused is respond for a command line that makes no sense.
func (a *app) misused(err error) error {
	return a.respond(nil, err, schema.Errorf(schema.InvalidInput, "%s", err.Error()))
}

// rpcFault is err as a kernel would have said it; nil for nil.
func rpcFault(err error, in *schema.CallInput) *schema.Error {
	var kernel *client.KernelError
	var own *schema.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kernel):
		fault := remote(kernel)
		if fault.Code() == 404 && unknownName(in) {
			fault.Kind = schema.UnknownSyscall
		}
		return fault
	}
	class := schema.Internal
	switch status(err, false) {
	case exitTimeout:
		class = schema.Timeout
	case exitDenied:
		class = schema.Unauthenticated
	case exitUnreachable:
		class = schema.Unavailable
	case exitError:
		if errors.As(err, &own) {
			return own
		}
	}
	return schema.Errorf(class, "%s", err.Error())
}

// remote is a kernel's error in the form that it had there.
func remote(e *client.KernelError) *schema.Error {
	fault := &schema.Error{Kind: schema.ClassOf(e.Code), Message: e.Message}
	if e.Code == 404 {
		fault.Kind = schema.NotFound
	}
	if e.Code == 422 {
		fault.Kind = schema.InvalidInput
	}
	if e.Cause != nil {
		fault.Cause = remote(e.Cause)
	}
	return fault
}

// unknownName reports whether a 404 says that there is no such syscall, and not that it found nothing: the codes of
// JSON-RPC tell the two apart, those of the wire do not.
func unknownName(in *schema.CallInput) bool {
	if schema.UserSpace(in.Syscall) {
		return true
	}
	typ, _, fault := schema.ShortCall(in.Syscall, in.Args)
	if fault != nil {
		return fault.Kind == schema.UnknownSyscall
	}
	_, ok := schema.Lookup(typ)
	return !ok
}
