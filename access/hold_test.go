package access_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// keeper admits an answer whose data says good, and delays every other refusal.
type keeper struct {
	delay time.Duration
	held  atomic.Int32 // delays that began
	freed atomic.Int32 // delays that ended
	done  atomic.Int32
}

func (k *keeper) Offer(context.Context, access.Peer, access.Channel) (access.Offer, error) {
	return access.Offer{
		Data: []byte(`{}`),
		Verify: func(answer []byte) (access.Identity, error) {
			if strings.Contains(string(answer), "good") {
				return access.Identity{Agent: 7}, nil
			}
			return access.Identity{}, fault.AuthSignature.New("wrong")
		},
		Hold: func() (time.Duration, func()) {
			k.held.Add(1)
			return k.delay, func() { k.freed.Add(1) }
		},
		Done: func() { k.done.Add(1) },
	}, nil
}

func answering(t *testing.T, data string, heard *string) func(net.Conn) {
	return func(conn net.Conn) {
		testkit.Must(t, readLine(conn))
		if _, err := conn.Write([]byte(strings.Replace(replyEvent, "{}", data, 1) + "\n")); err != nil {
			return
		}
		text := make([]byte, 1<<10)
		n, _ := conn.Read(text)
		*heard = string(text[:n])
	}
}

// TestHeldRefusalsTakeNoPlace: the refusal of a login is delayed, and the delay blocks no other
// connection.
func TestHeldRefusalsTakeNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{delay: 500 * time.Millisecond}
		door := newDoor(k)
		var heard, nothing string
		ended := make(chan time.Duration)
		go func() {
			took, err := receive(t, door, answering(t, `"bad"`, &heard))
			if code := fault.Of(err); code.Kind != fault.Unauthenticated {
				t.Errorf("ended with %v", err)
			}
			ended <- took
		}()
		synctest.Wait()
		if k.held.Load() != 1 || k.freed.Load() != 0 || door.Gate().Waiting() != 0 {
			t.Errorf("%d delays began, %d ended, %d connections wait", k.held.Load(), k.freed.Load(), door.Gate().Waiting())
		}
		if k.done.Load() != 1 {
			t.Error("Done was not called")
		}
		if took, err := receive(t, door, func(conn net.Conn) {
			answering(t, `"good"`, &nothing)(&cut{conn})
		}); err != nil || took != 0 {
			t.Errorf("a good login took %v: %v", took, err)
		}
		if took := <-ended; took != k.delay || k.freed.Load() != 1 {
			t.Errorf("the refusal was delayed by %v, released %d times", took, k.freed.Load())
		}
		if !strings.Contains(heard, "UNAUTHORIZED") || k.done.Load() != 2 {
			t.Errorf("the client got %q; Done was called %d times", heard, k.done.Load())
		}
	})
}

// cut is a connection whose reader stops after a line.
type cut struct{ net.Conn }

var errCut = errors.New("heard enough")

func (c *cut) Read(p []byte) (int, error) {
	if len(p) > 1 {
		return 0, errCut
	}
	return c.Conn.Read(p)
}
