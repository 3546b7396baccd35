package unixsock_test

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// listenWithQueue listens at path with a queue of the given length: package net always asks for the longest.
func listenWithQueue(t testing.TB, path string, length int) net.Listener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	unix.CloseOnExec(fd)
	must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	must(t, unix.Listen(fd, length))
	file := os.NewFile(uintptr(fd), path)
	ln, err := net.FileListener(file)
	must(t, err)
	must(t, file.Close())
	return ln
}
