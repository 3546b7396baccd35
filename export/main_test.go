package export_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }
