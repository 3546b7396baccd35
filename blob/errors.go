package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/promptware-os/pwos/schema/fault"
)

// full returns the error for an exhausted quota (507).
func full(format string, args ...any) *fault.Fault {
	return fault.BlobNoRoom.New(format, args...).WithFix("wait until old ones are removed, or raise the limit of the kernel")
}

// missing returns the error for a missing blob and for another origin's, so that a caller cannot distinguish them.
func missing() *fault.Fault {
	return fault.BlobNotFound.New("blob not found: it was removed, or never existed")
}

// outside returns the error for a reference that names no blob.
func (s *Store) outside() *fault.Fault {
	return fault.BlobForbidden.New("the reference is outside of the directory of blobs: copy the file into %s", s.dir)
}

// foreign returns the error for a file in the directory that is not a blob.
func foreign() *fault.Fault {
	return fault.BlobForbidden.New("the reference must name a regular file of this user without a second hard link: copy the file, do not link it, into the directory of blobs")
}

func invalid(format string, args ...any) *fault.Fault {
	return fault.BlobInvalid.New("Invalid input: "+format, args...)
}

func tooLarge(what string, most int64) *fault.Fault {
	return fault.BlobTooLarge.New("Invalid input: %s must not be larger than %d bytes", what, most)
}

// explain adds an id to a system error if a client can act on it.
func explain(verb string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return missing()
	case isFull(err):
		return fault.BlobNoRoom.New("the disk that holds the blobs is full: free some of it")
	}
	return fmt.Errorf("%s: %w", verb, err)
}
