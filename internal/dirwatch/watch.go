// Package dirwatch reports that something has changed in directories.
package dirwatch

import (
	"os"
	"sync"
)

// OnChange starts watch, such as Open, on directories. changed is closed at the first change. stop ends the watch, and must
// be called after an error too.
func OnChange(watch func(dirs []string) (*os.File, error), dirs ...string) (changed <-chan struct{}, stop func(), err error) {
	file, err := watch(dirs)
	if err != nil {
		return nil, func() {}, err
	}
	read := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(read)
		_, _ = file.Read(make([]byte, 4<<10)) // fails when the file is closed; a spurious change is harmless
	})
	return read, func() {
		_ = file.Close() // nothing was written
		reading.Wait()
	}, nil
}
