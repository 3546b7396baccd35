//go:build unix

// Package regular opens files at paths where another program may have put something else.
package regular

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
)

// Open opens the file at path as os.OpenFile does, with what Stat says of it. With os.O_CREATE its mode is 0600 afterwards,
// whether it was there or not.
//
// A symbolic link, and what is no regular file, is refused with a fault.PlaceUnsafe. A FIFO, which os.OpenFile would wait at,
// is one of these.
func Open(path string, flag int) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, nil, fault.Unsafe(path, "is a symbolic link", "remove the link")
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.Unsafe(path, "is not a regular file", "move it out of the way")
	}
	if err == nil && flag&os.O_CREATE != 0 {
		err = file.Chmod(0o600)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}
