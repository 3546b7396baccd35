package fetch

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/promptware-os/pwos/schema/fault"
)

func denied(format string, args ...any) *fault.Fault { return fault.HTTPForbidden.New(format, args...) }

func invalid(field, format string, args ...any) *fault.Fault {
	return fault.HTTPInvalid.New("Invalid input: "+field+" "+format, args...).At(field)
}

func upstream(format string, args ...any) *fault.Fault {
	return fault.HTTPUpstream.New(format, args...)
}

// tooLarge returns the fault for an answer over a limit. Its code is not 413, which is the code of a line that is too
// long (PROTOCOL 3).
func tooLarge(host, what string, limit int64) *fault.Fault {
	return fault.HTTPTooLarge.New("%s answered with %s of more than %d bytes", host, what, limit).
		WithFix("ask for a part of it, or raise the limit of the kernel")
}

// errTotal is the cause of a call's context after the time limit.
var errTotal = errors.New("time is up")

// explain converts the error of an exchange with host to the error that Do returns. If the call was canceled by a timeout or by a
// failure of the caller's functions, that is the cause of its context, whatever error the transport returns.
func (c *call) explain(host string, err error) error {
	if c.parent.Err() != nil {
		return c.canceled()
	}
	if shown, ok := errors.AsType[*fault.Fault](err); ok {
		return shown
	}
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(host, "a body", over.Limit)
	}
	switch cause := context.Cause(c.ctx); {
	case errors.Is(cause, errTotal):
		return fault.HTTPTimeout.New("%s did not finish within %v: ask for less, or set a longer timeout (at most %v)", host, c.timeout, c.limits.MaxTimeout)
	case cause != nil:
		return cause
	}
	return upstream("%s %s", host, reason(err))
}

// canceled returns the error of a call whose caller's context is done.
func (c *call) canceled() error {
	if errors.Is(c.parent.Err(), context.DeadlineExceeded) {
		return fault.HTTPTimeout.New("the caller's time was up before the answer was there: ask for less, or allow more time")
	}
	return fmt.Errorf("fetch: %w", context.Cause(c.parent))
}

// fail cancels the call with the error of a function of the caller.
func (c *call) fail(verb string, err error) error {
	err = fmt.Errorf("%s: %w", verb, err)
	c.cancel(err)
	return err
}

// reason returns a fixed text that describes why an exchange failed.
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
		return "does not use TLS on that port: check the port"
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return "refused the TLS handshake"
	}
	switch text := err.Error(); {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), strings.HasPrefix(text, "flate: "):
		return "packed its answer in a way that does not unpack"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused the connection: check the port, or try again later"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "hung up before its answer was complete: try again later"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "cannot be reached from this machine"
	// The standard library has no types for these errors.
	case strings.Contains(text, "response headers exceeded"), strings.Contains(text, "header list larger"):
		return "answered with a header that is too long"
	case strings.Contains(text, "malformed HTTP"):
		return "does not use HTTP on that port: check the port"
	}
	return "sent an invalid HTTP answer: try again later"
}
