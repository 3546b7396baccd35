// Package console tests the console in a real browser, against a running kernel with agents. Its tests run where
// PWOS_BROWSER names a Chromium.
package console_test

import (
	"testing"

	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

func TestMain(m *testing.M) { testkernel.Main(m) }
