// Package dirwatch tells when something happens in directories.
package dirwatch

import (
	"os"
	"sync"
)

// OnChange has watch, such as Open, watch directories. changed is closed once something has happened there; stop ends the watch,
// also after an error.
func OnChange(watch func(dirs []string) (*os.File, error), dirs ...string) (changed <-chan struct{}, stop func(), err error) {
	file, err := watch(dirs)
	if err != nil {
		return nil, func() {}, err
	}
	read := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(read)
		_, _ = file.Read(make([]byte, 4<<10)) // it fails when it is closed; a change that was none does no harm
	})
	return read, func() {
		_ = file.Close() // nothing was written
		reading.Wait()
	}, nil
}
