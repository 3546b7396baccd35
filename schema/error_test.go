package schema_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// classes is the table of PROTOCOL 3.
var classes = []struct {
	name  string
	class fault.Kind
	code  int
	word  string
}{
	{"internal", fault.Internal, 500, "INTERNAL_ERROR"},
	{"invalid_json", fault.InvalidJSON, 400, "INVALID_JSON"},
	{"schema_violation", fault.SchemaViolation, 422, "SCHEMA_VIOLATION"},
	{"line_too_long", fault.LineTooLong, 413, "LINE_TOO_LONG"},
	{"unknown_syscall", fault.UnknownSyscall, 404, "NOT_FOUND"},
	{"invalid_input", fault.InvalidInput, 422, "INVALID_INPUT"},
	{"not_found", fault.NotFound, 404, "NOT_FOUND"},
	{"unauthenticated", fault.Unauthenticated, 401, "UNAUTHORIZED"},
	{"forbidden", fault.Forbidden, 403, "UNAUTHORIZED"},
	{"ended", fault.Ended, 410, "CONFLICT"},
	{"conflict", fault.Conflict, 409, "CONFLICT"},
	{"quota_exceeded", fault.QuotaExceeded, 429, "QUOTA_EXCEEDED"},
	{"upstream", fault.Upstream, 502, "INTERNAL_ERROR"},
	{"timeout", fault.Timeout, 504, "TIMEOUT"},
	{"unavailable", fault.Unavailable, 503, "UNAVAILABLE"},
	{"insufficient", fault.Insufficient, 507, "INSUFFICIENT_RESOURCES"},
	{"pending", fault.Pending, 425, "APPROVAL_PENDING"},
}

// TestErrorCodes checks that each kind has both codes, and that the table has all kinds (MESSAGE 4.2.6 #1, MESSAGE C #8, EVENT 4.7.3).
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	for i, tc := range classes {
		e := &fault.Fault{Kind: tc.class, Message: tc.name}
		if e.Code() != tc.code || e.EventCode() != tc.word || e.Message != tc.name {
			t.Errorf("%s: %d, %s, %q", tc.name, e.Code(), e.EventCode(), e.Message)
		}
		if int(tc.class) != i {
			t.Errorf("%s is at index %d", tc.name, tc.class)
		}
	}
	if new(fault.Fault).Code() != 500 {
		t.Error("a fault without a class is not internal")
	}
	defer func() {
		if recover() == nil {
			t.Error("there are more classes than this table has")
		}
	}()
	(&fault.Fault{Kind: fault.Kind(len(classes))}).Code()
}

func TestErrorChain(t *testing.T) {
	t.Parallel()
	root := fault.MemoryNotFound.New("key not found")
	mid := &fault.Fault{Kind: fault.Upstream, Message: "vault did not answer", Cause: root}
	top := &fault.Fault{Kind: fault.Internal, Message: "seal", Cause: mid}
	if got := top.Error(); got != "seal: vault did not answer: key not found" {
		t.Errorf("Error() = %q", got)
	}
	if !errors.Is(top, root) || errors.Is(root, top) || root.Unwrap() != nil {
		t.Error("errors.Is does not follow the chain of causes")
	}
	var err error = root
	if got := errors.Unwrap(err); got != nil {
		t.Errorf("an error without a cause unwraps to %#v", got)
	}
}

func TestAsError(t *testing.T) {
	t.Parallel()
	shown := fault.MemoryChanged.New("already there")
	for name, err := range map[string]error{
		"itself":  shown,
		"wrapped": fmt.Errorf("store key %s: %w", secret, shown),
		"joined":  errors.Join(io.ErrClosedPipe, shown),
	} {
		if got := fault.Of(err); got != shown {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, err := range map[string]error{
		"library": io.ErrUnexpectedEOF,
		"path":    fmt.Errorf("open /home/%s/key: %w", secret, io.EOF),
		"nil":     nil,
	} {
		got := fault.Of(err)
		if got.Kind != fault.Internal || got.Code() != 500 || got.Cause != nil || got.Field != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if strings.Contains(got.Error(), secret) || strings.Contains(got.Error(), "EOF") || got.Message == "" {
			t.Errorf("%s: the message reveals the secret, or the cause: %q", name, got.Message)
		}
	}
}

// TestTooLong checks the fixed text with the limit of the connection (MESSAGE 4.3.2 #2, PROTOCOL 3).
func TestTooLong(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]string{
		schema.MaxLine: "16KB", schema.MaxEventLine: "1MB", 4 << 20: "4MB", 1 << 10: "1KB", 1536 << 10: "1536KB", 20_000: "20000 bytes", 16: "16 bytes",
	} {
		e := schema.TooLong(limit)
		if e.Kind != fault.LineTooLong || e.Message != "Message exceeds maximum line length of "+want {
			t.Errorf("TooLong(%d) = %+v", limit, e)
		}
	}
	if schema.MaxLine != 16_384 || schema.MaxEventLine != 1_048_576 {
		t.Error("other limits than MESSAGE 4.3.2 and EVENT 4.3.2")
	}
}
