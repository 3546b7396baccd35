package main

import (
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// respond writes the one JSON-RPC 2.0 response of a call, and returns err, which decides the exit status.
func (a *app) respond(data []byte, err error, failure *fault.Fault) error {
	var response []byte
	if failure == nil {
		response = schema.AppendRPCResult(nil, data)
	} else {
		response = schema.AppendRPCError(nil, failure)
	}
	if _, writeErr := a.stdout.Write(response); writeErr != nil {
		return errors.Join(err, fmt.Errorf("write response: %w", writeErr))
	}
	return err
}

// misused is respond for a command line that makes no sense.
func (a *app) misused(err error) error {
	return a.respond(nil, err, fault.UsageInvalid.New("%s", err.Error()))
}

// rpcFault is err as a kernel would have said it; nil for nil.
func rpcFault(err error, in *schema.CallInput) *fault.Fault {
	if err == nil {
		return nil
	}
	if kernel := client.Answered(err); kernel != nil {
		failure := remote(kernel)
		if failure.Code() == 404 && unknownName(in) {
			failure.Kind = fault.UnknownSyscall
		}
		return failure
	}
	kind := fault.Internal
	switch status(err, false) {
	case exitTimeout:
		kind = fault.Timeout
	case exitDenied:
		kind = fault.Unauthenticated
	case exitUnreachable:
		kind = fault.Unavailable
	case exitError:
		if own, ok := errors.AsType[*fault.Fault](err); ok {
			return own
		}
	}
	return &fault.Fault{Kind: kind, Message: err.Error()}
}

// remote is a kernel's error in the form that it had there.
func remote(answer *fault.Fault) *fault.Fault {
	failure := *answer
	switch failure.Code() {
	case 404:
		failure.Kind = fault.NotFound
	case 422:
		failure.Kind = fault.InvalidInput
	}
	if failure.Cause != nil {
		failure.Cause = remote(failure.Cause)
	}
	return &failure
}

// unknownName reports whether a 404 says that there is no such syscall, and not that it found nothing: the codes of
// JSON-RPC tell the two apart, those of the wire do not.
func unknownName(in *schema.CallInput) bool {
	if schema.UserSpace(in.Syscall) {
		return true
	}
	typ, _, failure := schema.ShortCall(in.Syscall, in.Args)
	if failure != nil {
		return failure.Kind == fault.UnknownSyscall
	}
	_, ok := schema.Lookup(typ)
	return !ok
}
