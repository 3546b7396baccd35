// Package promptware_test takes examples/promptware through what the kernel does with a root.
package promptware_test

import (
	"testing"

	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

func TestMain(m *testing.M) { testkernel.Main(m) }
