package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/schema"
)

func denied(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.Forbidden, format, args...)
}

func invalid(field, format string, args ...any) *schema.Error {
	e := schema.Errorf(schema.InvalidInput, "Invalid input: "+field+" "+format, args...)
	e.Field = field
	return e
}

func upstream(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.Upstream, format, args...)
}

// tooLarge is an answer over a limit. It is the upstream's failure to stay within it: 413 is the code of a line
// (PROTOCOL 3).
func tooLarge(host, what string, limit int64) *schema.Error {
	return upstream("%s answered with %s of more than %d bytes: ask for a part of it, or raise the limit of the kernel", host, what, limit)
}

// The causes of contexts that a call of its own ends.
var (
	errTotal  = errors.New("time is up")
	errHeader = errors.New("no header in time")
	errIdle   = errors.New("no bytes in time")
)

// explain turns what went wrong in an exchange with host into the error that Do returns.
func (c *call) explain(host string, err error) error {
	if c.parent.Err() != nil {
		return c.canceled()
	}
	if shown, ok := errors.AsType[*schema.Error](err); ok {
		return shown
	}
	switch cause := context.Cause(c.ctx); {
	case errors.Is(cause, errTotal):
		return schema.Errorf(schema.Timeout, "%s did not finish within %v: ask for less, or set a longer timeout (at most %v)",
			host, c.timeout, c.limits.MaxTimeout)
	case errors.Is(cause, errHeader):
		return schema.Errorf(schema.Timeout, "%s did not begin to answer within %v: try again later", host, c.limits.Header)
	case errors.Is(cause, errIdle):
		return schema.Errorf(schema.Timeout, "%s stopped sending for %v: try again later", host, c.limits.Idle)
	}
	if own, ok := errors.AsType[*localError](err); ok {
		return own
	}
	return upstream("%s %s", host, reason(err))
}

// canceled says that the caller has gone, or that its time is up.
func (c *call) canceled() error {
	if errors.Is(c.parent.Err(), context.DeadlineExceeded) {
		return schema.Errorf(schema.Timeout, "the caller's time was up before the answer was there: ask for less, or allow more time")
	}
	return &localError{"fetch", context.Cause(c.parent)}
}

// localError is a failure on our side, which the caller's own function or context explains.
type localError struct {
	verb string
	err  error
}

func (e *localError) Error() string { return e.verb + ": " + e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

// reason says in words of ours why an exchange failed.
func reason(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if e.IsNotFound {
			return "is not the name of any host: check the URL"
		}
		return "could not be looked up: check that this machine resolves names, then try again"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "has no valid certificate: check the name, or have its authority trusted on this machine"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "does not speak TLS at that port: check the port"
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return "refused the TLS handshake"
	}
	switch text := err.Error(); {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused the connection: check the port, or try again later"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "hung up before its answer was complete: try again later"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "cannot be reached from this machine"
	// The library has no types for these.
	case strings.Contains(text, "response headers exceeded"), strings.Contains(text, "header list larger"):
		return "answered with a header that is too long"
	case strings.Contains(text, "malformed HTTP"):
		return "does not speak HTTP at that port: check the port"
	}
	return "failed to answer as HTTP has it: try again later"
}
