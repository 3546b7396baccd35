package kernel_test

import (
	"testing"

	"github.com/promptware-os/pwos/kernel"
)

// TestCheckName: a function that decides may return what CheckName returns.
func TestCheckName(t *testing.T) {
	t.Parallel()
	var err error = kernel.CheckName("key", "notes/1") // a nil pointer would be an error
	if err != nil {
		t.Errorf("a visible name: %v", err)
	}
	if err := kernel.CheckName("key", "notes/\u200b1"); err == nil {
		t.Error("a name with a character of no width is accepted")
	}
}
