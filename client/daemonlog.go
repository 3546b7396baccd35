package client

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// daemonLog is where a daemon that was started by a client prints to.
type daemonLog struct {
	path  string
	file  *os.File
	begin int64 // where this daemon's lines begin
}

// openLog opens the log for a daemon to append to. The file is only ours, and is no link to somewhere else.
func openLog(path string) (*daemonLog, error) {
	// O_NONBLOCK is for the case that a FIFO stands there.
	const flags = os.O_RDWR | os.O_APPEND | os.O_CREATE | unix.O_NOFOLLOW | unix.O_NONBLOCK
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.Unsafe(path, "is not a regular file", "move it out of the way")
	}
	if err == nil {
		err = file.Chmod(0o600)
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, err
	}
	return &daemonLog{path: path, file: file, begin: info.Size()}, nil
}

// LogTailLines is how many lines of a log an error quotes at most.
const LogTailLines = 10

// tailBytes is how much of it.
const tailBytes = 8 << 10

// tail returns the last lines that were written since the log was opened.
func (l *daemonLog) tail() []string {
	lines, err := lastLines(l.file, l.begin)
	if err != nil {
		return []string{fmt.Sprintf("(%v)", err)}
	}
	return lines
}

// lastLines returns the last lines of file, as far as they lie behind begin.
func lastLines(file *os.File, begin int64) ([]string, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	from := max(begin, info.Size()-tailBytes)
	text, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
	if err != nil {
		return nil, err
	}
	whole := strings.TrimRight(string(text), "\n")
	if whole == "" {
		return nil, nil
	}
	lines := strings.Split(whole, "\n")
	return lines[max(0, len(lines)-LogTailLines):], nil
}

// LogTail returns the last lines of what the daemons that clients have started in the runtime directory of o printed, oldest
// first, at most LogTailLines, and the file that has all. Where that cannot be read there are none.
func LogTail(o Options) (lines []string, path string) {
	places := o.places()
	if unixsock.CheckPrivateDir(places.Dir) != nil {
		return nil, places.Log
	}
	file, err := os.OpenFile(places.Log, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, places.Log
	}
	defer file.Close() // read only
	lines, err = lastLines(file, 0)
	if err != nil { // no regular file
		return nil, places.Log
	}
	return lines, places.Log
}
