//go:build !linux

package load

import (
	"context"
	"net"
	"sync"
	"time"
)

// drive runs w on every connection until the given time, and returns the outcome of each.
func drive(ctx context.Context, conns []net.Conn, w Workload, newCheck func() check, until time.Time) (drivers []*driver, err error) {
	defer context.AfterFunc(ctx, func() {
		for _, conn := range conns {
			_ = conn.Close() // ends the drivers; no answer is lost
		}
	})()
	var driving sync.WaitGroup
	for _, conn := range conns {
		d := newDriver(conn, w, newCheck())
		drivers = append(drivers, d)
		driving.Go(func() {
			for d.begin(); d.due(); {
				d.step(until)
			}
		})
	}
	driving.Wait()
	return drivers, nil
}
