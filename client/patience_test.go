package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/client"
)

var errSpent = errors.New("spent")

// TestPatienceRests: a pause stops the timeout, and resuming continues with what was left of it.
func TestPatienceRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := client.NewPatience(context.Background(), 5*time.Second, errSpent)
		begin := time.Now()
		time.Sleep(3 * time.Second)
		for range 2 {
			resume := p.Rest()
			time.Sleep(time.Hour)
			resume()
			time.Sleep(500 * time.Millisecond)
		}
		if p.Err() != nil {
			t.Fatal("the timeout ended too early")
		}
		<-p.Done()
		if took := time.Since(begin); took != 2*time.Hour+5*time.Second || !errors.Is(context.Cause(p), errSpent) {
			t.Errorf("the context lasted %v, and ended with %v", took, context.Cause(p))
		}
	})
}

// TestPatienceAndDeadline: if the timeout and its context end at the same time, the cause is the context's.
func TestPatienceAndDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("late")
		for range 100 {
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, late)
			p := client.NewPatience(ctx, time.Second, errSpent)
			<-p.Done()
			synctest.Wait()
			if cause := context.Cause(p); !errors.Is(cause, late) {
				t.Errorf("it ended with %v", cause)
			}
			p.Finish()
			cancel()
		}
	})
}

// TestPatienceEnds: the end of the parent context ends it.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		p := client.NewPatience(ctx, time.Hour, errSpent)
		cancel(errors.New("interrupted"))
		<-p.Done()
		if cause := context.Cause(p); cause.Error() != "interrupted" {
			t.Errorf("it ended with %v", cause)
		}
		p.Finish()
	})
}
