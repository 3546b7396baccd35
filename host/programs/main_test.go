package programs_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/tidy"
)

func TestMain(m *testing.M) { os.Exit(tidy.Main(m)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bounded is a context that ends a test which would else hang.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
