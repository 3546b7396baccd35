package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema"
)

// sweepEvery is the time between two looks for blobs that nobody needs any more, where their life is not shorter.
const sweepEvery = time.Minute

// blobs is the blob directory with what keeps it clean.
type blobs struct {
	*blob.Store
	dir   string
	stop  chan struct{}
	alive sync.WaitGroup
}

// openBlobs opens the blob directory. The instance lock must be held.
func openBlobs(cfg *config.Config, log *slog.Logger) (*blobs, error) {
	dir := filepath.Join(cfg.RuntimeDir, "blobs")
	store, err := blob.New(blob.Options{
		Dir: dir, Origin: cfg.Origin,
		FileBytes: cfg.Blobs.FileBytes, DirBytes: cfg.Blobs.DirBytes, DirFiles: cfg.Blobs.DirFiles, TTL: time.Duration(cfg.Blobs.TTL),
	})
	if err != nil {
		return nil, fmt.Errorf("open blob directory: %w", err)
	}
	b := &blobs{Store: store, dir: dir, stop: make(chan struct{})}
	every := sweepEvery
	if ttl := time.Duration(cfg.Blobs.TTL); ttl > 0 {
		every = min(every, ttl)
	}
	b.alive.Go(func() { b.sweep(every, log) })
	return b, nil
}

// sweep removes old blobs after each of every, but for a directory that is empty.
func (b *blobs) sweep(every time.Duration, log *slog.Logger) {
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

// awaitFirst returns once there is anything in the directory, or may be, so that an idle kernel does not wake. It returns false where
// the store is to be closed.
func (b *blobs) awaitFirst() bool {
	changed, stop, err := onChange(watchDirs, b.dir, filepath.Dir(b.dir)) // which tells that it was removed
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

// close ends the sweeping. Blobs stay where they are.
func (b *blobs) close() error {
	close(b.stop)
	b.alive.Wait()
	if err := b.Close(); err != nil {
		return fmt.Errorf("close blob directory: %w", err)
	}
	return nil
}

// Put implements actors.Blobs.
func (b *blobs) Put(pid int64, origin string, text bool, r io.Reader) (schema.BlobPointer, error) {
	put := b.Store.Put
	if text {
		put = b.PutText
	}
	kept, err := put(origin, r)
	if err == nil {
		err = b.Give(pid, kept.Pointer)
	}
	return kept.Pointer, err
}

// Read implements actors.Blobs.
func (b *blobs) Read(pid int64, origin string, p schema.BlobPointer, most int64) (data []byte, err error) {
	return b.ReadFor(pid, origin, p, most)
}
