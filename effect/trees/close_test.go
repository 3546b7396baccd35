package trees_test

import (
	"fmt"
	"testing"
	"time"
)

// TestCloseDuringUndoOfLeft: the kernel may end while what a program that has left did is undone.
func TestCloseDuringUndoOfLeft(t *testing.T) {
	for i := range 6 {
		w := newWorld(t)
		w.write("a", "1")
		w.enter(1, "a")
		w.begin(1, "u")
		for j := range 600 {
			w.write(fmt.Sprint("f", j), "2")
		}
		w.finish(1, "u")
		w.Leave(1)
		undone := make(chan error, 1)
		go func() { _, err := w.undo("a", 1); undone <- err }()
		time.Sleep(time.Duration(i*3+1) * time.Millisecond)
		closed := make(chan struct{})
		go func() { w.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(5 * time.Second):
			t.Fatal("deadlock")
		}
		t.Log(<-undone)
	}
}
