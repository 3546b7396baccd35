package actors_test

import (
	"bytes"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/journal"
)

// room is a file system on which segments of the journal cannot be written, or synced, while a test says so.
type room struct {
	journal.FS

	mu       sync.Mutex
	writing  error
	syncing  error
	words    string // only writes that contain it fail; "": all
	single   bool   // only the next write fails
	attempts int    // writes that were refused
}

// full makes every write fail with err, until free.
func (r *room) full(err error) { r.set(&r.writing, err) }

// fullOnce makes one write fail with err: the first that contains the words.
func (r *room) fullOnce(err error, words string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing, r.words, r.single = err, words, true
}

// free lets writes succeed again.
func (r *room) free() { r.set(&r.writing, nil) }

// breakSync makes every fsync fail with err, including one in flight.
func (r *room) breakSync(err error) { r.set(&r.syncing, err) }

func (r *room) set(field *error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*field = err
}

// refused returns the number of writes that failed.
func (r *room) refused() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attempts
}

// Create implements journal.FS.
func (r *room) Create(name string) (journal.File, error) {
	f, err := r.FS.Create(name)
	if err != nil || !strings.HasSuffix(name, ".ndjson") {
		return f, err
	}
	return &roomFile{File: f, room: r}, nil
}

type roomFile struct {
	journal.File

	room *room
}

func (f *roomFile) WriteAt(p []byte, off int64) (int, error) {
	f.room.mu.Lock()
	err := f.room.writing
	if !bytes.Contains(p, []byte(f.room.words)) {
		err = nil
	}
	if err != nil {
		f.room.attempts++
		if f.room.single {
			f.room.writing = nil
		}
	}
	f.room.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *roomFile) Sync() error {
	err := f.File.Sync()
	f.room.mu.Lock()
	defer f.room.mu.Unlock()
	if f.room.syncing != nil {
		return f.room.syncing
	}
	return err
}
