package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/promptware-os/pwos/schema/fault"
)

// TestPrefix checks that Prefix adds text before the message of a fault and keeps its id, and that other errors keep their
// chain.
func TestPrefix(t *testing.T) {
	t.Parallel()
	made := fault.FileTooLarge.New("too large").WithFix("name another").At("uri")
	got := fault.Of(fault.Prefix(fmt.Errorf("hidden: %w", made), "read %s", "a"))
	if got.Text() != "read a: too large: name another" || !errors.Is(got, fault.FileTooLarge) || got.Field != "uri" || got.Kind != fault.Insufficient {
		t.Errorf("%+v", got)
	}
	if made.Message != "too large" {
		t.Errorf("Prefix has changed its argument: %+v", made)
	}
	if err := fault.Prefix(io.EOF, "read %s", "a"); !errors.Is(err, io.EOF) || err.Error() != "read a: EOF" {
		t.Error(err)
	}
}
