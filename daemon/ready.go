package daemon

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ReadyVariable names the descriptor on which whoever started the daemon waits for one line: "READY <pid>", "RUNNING"
// where another daemon serves already, or "FAILED <reason>".
const ReadyVariable = "PWOS_READY_FD"

// waiter is who waits for the daemon to be ready; a nil *waiter is nobody.
type waiter struct{ pipe *os.File }

// newWaiter takes the descriptor over, so that no child of ours inherits it.
func newWaiter(getenv func(string) string) (*waiter, error) {
	text := getenv(ReadyVariable)
	if text == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 || !pipe(fd) {
		return nil, fmt.Errorf("%s=%s is no inherited pipe", ReadyVariable, text)
	}
	syscall.CloseOnExec(fd)
	return &waiter{pipe: os.NewFile(uintptr(fd), "readiness pipe")}, os.Unsetenv(ReadyVariable)
}

// tell writes the line for the outcome of Open. Nobody may be there any more, which changes nothing for us.
func (w *waiter) tell(opened error) {
	if w == nil {
		return
	}
	line := "READY " + strconv.Itoa(os.Getpid())
	switch {
	case errors.Is(opened, ErrRunning):
		line = "RUNNING"
	case opened != nil:
		line = "FAILED " + strings.ReplaceAll(opened.Error(), "\n", "; ")
	}
	_, _ = w.pipe.WriteString(line + "\n")
	_ = w.pipe.Close()
}

// pipe reports whether fd is open and a pipe: a number gone astray could be any file of ours.
func pipe(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}
