package console_test

import (
	"testing"

	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

func TestMain(m *testing.M) { testkernel.Main(m) }
