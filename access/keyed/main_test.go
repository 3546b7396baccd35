package keyed_test

import (
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/tidy"
)

func TestMain(m *testing.M) { os.Exit(tidy.Main(m)) }
