package blob

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/promptware-os/pwos/internal/dirwatch"
	"github.com/promptware-os/pwos/schema"
)

// sweepEvery is the time between two sweeps, unless the time to live is shorter.
const sweepEvery = time.Minute

// Directory is a Store with a goroutine that sweeps it.
type Directory struct {
	*Store
	dir   string
	stop  chan struct{}
	alive sync.WaitGroup
}

// Open opens a directory of blobs. No other Directory may have it open.
func Open(o Options, log *slog.Logger) (*Directory, error) {
	store, err := New(o)
	if err != nil {
		return nil, fmt.Errorf("open blob directory: %w", err)
	}
	b := &Directory{Store: store, dir: o.Dir, stop: make(chan struct{})}
	every := sweepEvery
	if o.TTL > 0 {
		every = min(every, o.TTL)
	}
	b.alive.Go(func() { b.sweep(every, log) })
	return b, nil
}

// sweep removes old blobs at each interval. It waits while the directory is empty.
func (b *Directory) sweep(every time.Duration, log *slog.Logger) {
	for b.awaitFirst() {
		select {
		case <-b.stop:
			return
		case <-time.After(every):
		}
		if removed, err := b.Sweep(); err != nil {
			log.Warn("blobs were not swept", "error", err)
		} else if removed.Files > 0 {
			log.Debug("old blobs removed", "files", removed.Files, "bytes", removed.Bytes)
		}
	}
}

// awaitFirst waits until the directory may have a file, so that an idle kernel does not wake up. It returns false when the
// store is closed.
func (b *Directory) awaitFirst() bool {
	changed, stop, err := dirwatch.OnChange(dirwatch.Open, b.dir, filepath.Dir(b.dir)) // closing the store removes a name in the parent
	defer stop()
	if err != nil {
		return true
	}
	if names, err := os.ReadDir(b.dir); err != nil || len(names) > 0 {
		return true
	}
	select {
	case <-b.stop:
		return false
	case <-changed:
		return true
	}
}

// Close stops the sweeping. Blobs stay.
func (b *Directory) Close() error {
	close(b.stop)
	b.alive.Wait()
	if err := b.Store.Close(); err != nil {
		return fmt.Errorf("close blob directory: %w", err)
	}
	return nil
}

// Put writes a file for a process, text or not.
func (b *Directory) Put(pid int64, origin string, text bool, r io.Reader) (schema.BlobPointer, error) {
	kept, err := b.Store.Put(pid, origin, text, r)
	return kept.Pointer, err
}
