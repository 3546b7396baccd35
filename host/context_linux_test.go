package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestStartContext: a start whose context has ended leaves no process.
func TestStartContext(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := h.Start(ctx, shell(t, "sleep 1000"))
	if p != nil || !errors.Is(err, context.Canceled) || len(h.Processes()) != 0 {
		t.Errorf("got %v, %v", p, err)
	}
}

// TestCloseDuringStart: Close during starts leaves no process.
func TestCloseDuringStart(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{})
	testkit.Must(t, err)
	results := make(chan error)
	const many = 20
	for range many {
		c := shell(t, "trap '' TERM; sleep 1000")
		go func() {
			p, err := h.Start(context.Background(), c)
			if err == nil {
				<-p.Done()
				err = p.Conn().Close()
			}
			results <- err
		}()
	}
	testkit.Eventually(t, "a program that runs", func() bool { return len(h.Processes()) > 0 })
	h.Close(t.Context(), 0)
	for range many {
		if err := <-results; err != nil && !errors.Is(err, host.ErrClosed) {
			var start *host.StartError
			if !errors.As(err, &start) {
				t.Error(err)
			}
		}
	}
	if left := h.Processes(); len(left) != 0 {
		t.Errorf("%d processes are left", len(left))
	}
}
