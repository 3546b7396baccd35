package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/promptware-os/pwos/schema"
)

// full says that there is no room (507).
func full(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.Insufficient, format+": wait until old ones are removed, or raise the limit of the kernel", args...)
}

// missing is the answer for what is not there, and for what is there and is another origin's: the same in every word.
func missing() *schema.Error {
	return schema.Errorf(schema.NotFound, "blob not found: it was removed, or there never was one")
}

// outside refuses a reference to what is no blob.
func (s *Store) outside() *schema.Error {
	return schema.Errorf(schema.Forbidden, "the reference leads out of the directory of blobs: copy the file into %s", s.dir)
}

// foreign refuses a file that lies among the blobs and is none.
func foreign() *schema.Error {
	return schema.Errorf(schema.Forbidden, "the reference is to no regular file of this user's under one name: copy it, no link, into the directory of blobs")
}

func invalid(format string, args ...any) *schema.Error {
	return schema.Errorf(schema.InvalidInput, "Invalid input: "+format, args...)
}

// explain gives an error of the system its class, where a client can do something about it.
func explain(verb string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return missing()
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return schema.Errorf(schema.Insufficient, "the disk that holds the blobs is full: free some of it")
	}
	return fmt.Errorf("%s: %w", verb, err)
}
