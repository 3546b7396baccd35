package journal

import "io"

// FS is all that a journal asks of a file system. Files are read and written at offsets only, so that no hidden position
// survives a failed write. Errors wrap those of io/fs (ErrNotExist, ErrExist) and the system's (ENOSPC, EIO).
type FS interface {
	// Mkdir makes one directory, mode 0700; its parent must be there.
	Mkdir(name string) error

	// ReadDir returns the base names in a directory, in any order.
	ReadDir(name string) ([]string, error)

	// Open opens a file that exists, for reading.
	Open(name string) (File, error)

	// Create opens a file for reading and writing, mode 0600, and makes it, empty, where it is not there.
	Create(name string) (File, error)

	// Rename gives a file another name in the same directory, and takes that from whatever had it.
	Rename(from, to string) error

	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error

	// Lock takes the directory for this caller until the Dir is closed or the process dies, or returns ErrLocked.
	Lock(dir string) (Dir, error)
}

// Dir is a directory that stays open, so that to sync it needs no descriptor.
type Dir interface {
	io.Closer

	// Sync makes the names in the directory durable.
	Sync() error
}

// File is an open file of an FS. Sync may run beside WriteAt and Allocate; it covers what was written before it began.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer

	Size() (int64, error)
	// Truncate sets the size; what Allocate had kept beyond it is given back.
	Truncate(size int64) error

	// Allocate has the disk keep room for length bytes from off on, so that to write them cannot fail for want of it. Size
	// stays as it is. The error wraps errors.ErrUnsupported where the file system has no such thing.
	Allocate(off, length int64) error

	Sync() error
}
