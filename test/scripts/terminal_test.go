package scripts_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// runAtTerminal is runPwos with a terminal for stdin and stdout, as wide as COLUMNS says.
func runAtTerminal(ts *testscript.TestScript, neg bool, args []string) {
	want, rest := expected(ts, neg, args)
	ours, theirs, err := openTerminal()
	ts.Check(err)
	if columns, err := strconv.ParseUint(ts.Getenv("COLUMNS"), 10, 16); err == nil {
		ts.Check(unix.IoctlSetWinsize(int(theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}))
	}
	cmd := exec.Command(program("pwos"), rest...)
	// The script may have changed its environment; only its changes are passed on.
	cmd.Env = append(placeOf(ts).env(), "NO_COLOR="+ts.Getenv("NO_COLOR"), "TERM="+ts.Getenv("TERM"), "PATH="+ts.Getenv("PATH"))
	cmd.Dir = ts.MkAbs(".")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, ts.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // Ctrl-C and the like must not reach the test
	if err = cmd.Start(); err != nil {
		ts.Check(errors.Join(err, ours.Close(), theirs.Close()))
	}
	closeErr := theirs.Close()
	// When no process has it open any more, reading from our end fails with EIO.
	if _, err := io.Copy(ts.Stdout(), ours); err != nil && !errors.Is(err, syscall.EIO) {
		closeErr = errors.Join(closeErr, err)
	}
	err = cmd.Wait()
	ts.Check(errors.Join(closeErr, ours.Close()))
	checkStatus(ts, err, want)
}

// openTerminal opens a pseudo-terminal and returns both its ends.
func openTerminal() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	name, err := unlockTerminal(ours)
	if err == nil {
		theirs, err = os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}
