package actors_test

import (
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/schema"
)

// TestBackgroundPanics shows that a panic in the background work of a connection ends only that connection.
func TestBackgroundPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, newFake())
		s.kernel.NewFeed(newLink(schema.OsMessage, schema.MaxLine, unbounded), "f").Work(func() { panic(internals) })
		c := s.connect()
		c.send(ping("a", "1"))
		expect(t, c, `a {"payload":1}`)
	})
}
