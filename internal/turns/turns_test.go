package turns_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/internal/turns"
)

// TestTake: a party waits at its own limit, or for the total, and one that gives up leaves its place; the free party waits for no other.
func TestTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		of := turns.New(2, 3, 0)
		var running [10]int
		take := func(party int64) (back func()) {
			over := make(chan struct{})
			go func() {
				release, err := of.Take(ctx, party)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				running[party]++
				<-over
				running[party]--
				release()
			}()
			synctest.Wait()
			return func() { close(over); synctest.Wait() }
		}
		want := func(at string, zero, one, two int) {
			t.Helper()
			if running[0] != zero || running[1] != one || running[2] != two {
				t.Errorf("%s: running %v", at, running)
			}
		}
		first := take(1)
		defer take(1)()
		defer take(1)()
		want("the limit of a party", 0, 2, 0)
		defer take(2)()
		defer take(2)()
		want("the total", 0, 2, 1)
		defer take(0)()
		want("the free party", 1, 2, 1)
		first()
		want("a place is free", 1, 1, 2)
		stop()
		synctest.Wait()
	})
}
