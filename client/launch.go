package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/inside"
	"github.com/promptware-os/pwos/internal/regular"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Daemon is a daemon process that this process has started.
type Daemon struct {
	cmd *exec.Cmd
}

// Launch starts command as the daemon of the runtime directory dir, in a session of its own, and returns when it is
// ready. It inherits only the readiness pipe: not the terminal, not the working directory, no descriptor above 2, all
// of which are marked close-on-exec in this process. Its output is appended to the log in dir.
//
// It returns a fault.DaemonLaunch, which wraps the cause of ctx's end if that was the reason; in either case the daemon
// has ended.
func Launch(ctx context.Context, command Command, dir string) (*Daemon, error) {
	if err := mayLaunch(); err != nil {
		return nil, err
	}
	places := unixsock.PlacesIn(dir)
	if err := unixsock.EnsurePrivateDir(places.Dir); err != nil {
		return nil, err
	}
	return startDaemon(ctx, &command, places)
}

// mayLaunch refuses to start a kernel for an agent, which would be its operator.
func mayLaunch() error {
	if !inside.Agent() {
		return nil
	}
	return fault.DaemonInside.New("this process belongs to an agent, for which no other kernel is started; its own is reached at PWOS_RUNTIME_DIR, unless its sandbox is off")
}

func startDaemon(ctx context.Context, command *Command, places Places) (*Daemon, error) {
	log, err := openLog(places.Log)
	if err != nil {
		return nil, fmt.Errorf("open daemon log: %w", err)
	}
	defer log.file.Close() // nothing is written to this descriptor; the daemon has its own
	ready, told, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make readiness pipe: %w", err)
	}
	defer ready.Close() // only read from
	d := &Daemon{cmd: daemonCommand(command, places, log.file, told)}
	sealDescriptors()
	err = d.cmd.Start()
	if closeErr := told.Close(); err == nil && closeErr != nil {
		err = errors.Join(closeErr, d.abort())
	}
	if err != nil {
		return nil, launchFailed(err, places.Log, nil)
	}
	if err := awaitReady(ctx, ready); err != nil {
		return nil, d.explain(ctx, err, log)
	}
	return d, nil
}

// explain ends a daemon that did not become ready, and returns the reason. A daemon that reported one has until ctx
// ends to write its log.
func (d *Daemon) explain(ctx context.Context, err error, log *daemonLog) error {
	var endErr error
	if errors.Is(err, fault.DaemonLaunch) || errors.Is(err, errRunning) || errors.Is(err, errSilent) {
		stop := context.AfterFunc(ctx, func() { _ = d.Kill() }) // fails if it has ended by itself
		endErr = d.end()
		stop()
	} else {
		endErr = d.abort()
	}
	if errors.Is(err, errSilent) {
		err = fmt.Errorf("%w (%v)", err, d.cmd.ProcessState)
	}
	return launchFailed(errors.Join(err, endErr), log.path, log.tail())
}

// daemonCommand returns the daemon's command. It runs in its own session, so that no terminal ends it
// (BRIDGE 4.5.2).
func daemonCommand(command *Command, places Places, log, told *os.File) *exec.Cmd {
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Dir = "/"
	cmd.Env = daemonEnv(slices.Concat(os.Environ(), command.Env), places.Dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{told} // descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// daemonEnv returns the environment of a daemon that serves dir. It has another working directory, so relative
// paths are made absolute; variables of a service manager are removed.
func daemonEnv(env []string, dir string) []string {
	var out []string
	for _, assignment := range env {
		name, value, _ := strings.Cut(assignment, "=")
		switch name {
		case "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC":
			continue
		case "PWOS_STATE_DIR", "PWOS_CONFIG":
			if abs, err := filepath.Abs(value); err == nil && value != "" {
				assignment = name + "=" + abs
			}
		}
		out = append(out, assignment)
	}
	return append(out, "PWOS_RUNTIME_DIR="+dir, "PWOS_READY_FD=3")
}

// sealable is the number of inherited descriptors that are checked: shells pass on low ones.
const sealable = 1024

// sealDescriptors marks inherited descriptors close-on-exec. The reader of a pipe would wait forever if the daemon
// inherited its write end.
func sealDescriptors() {
	for fd := 3; fd < sealable; fd++ {
		unix.CloseOnExec(fd)
	}
}

// PID returns the daemon's process number.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Wait waits until the daemon has ended. It returns an *exec.ExitError if that was a failure.
func (d *Daemon) Wait() error { return d.cmd.Wait() }

// Kill kills the daemon; call Wait after it.
func (d *Daemon) Kill() error {
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill daemon: %w", err)
	}
	return nil
}

// abort kills the daemon and waits for it.
func (d *Daemon) abort() error {
	if err := d.Kill(); err != nil {
		return err
	}
	return d.end()
}

// end waits for the daemon and ignores its exit status.
func (d *Daemon) end() error {
	if err := d.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return fmt.Errorf("wait for daemon: %w", err)
	}
	return nil
}

// release detaches the daemon, which outlives this process. If the daemon ends first, it stays defunct until this
// process ends.
func (d *Daemon) release() {
	_ = d.cmd.Process.Release() // on Unix it always succeeds
}

// daemonLog is the log of a daemon that a client started.
type daemonLog struct {
	path  string
	file  *os.File
	begin int64 // offset of this daemon's lines
}

// openLog opens the log for a daemon to append to. The file must belong to this user, and must not be a link.
func openLog(path string) (*daemonLog, error) {
	file, info, err := regular.Open(path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return &daemonLog{path: path, file: file, begin: info.Size()}, nil
}

// LogTailLines bounds the lines of a log in an error.
const LogTailLines = 10

// tailBytes bounds the bytes of these lines.
const tailBytes = 8 << 10

// tail returns the last lines that were written since the log was opened.
func (l *daemonLog) tail() []string {
	lines, err := lastLines(l.file, l.begin)
	if err != nil {
		return []string{fmt.Sprintf("(%v)", err)}
	}
	return lines
}

// lastLines returns the last lines of file after begin.
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

// LogTail returns the path of the log of daemons that clients start in the runtime directory of o, and its last lines,
// oldest first, at most LogTailLines. It returns no lines if the log cannot be read.
func LogTail(o Options) (lines []string, path string) {
	places := o.places()
	if unixsock.CheckPrivateDir(places.Dir) != nil {
		return nil, places.Log
	}
	file, _, err := regular.Open(places.Log, os.O_RDONLY)
	if err != nil {
		return nil, places.Log
	}
	defer file.Close() // read only
	lines, err = lastLines(file, 0)
	if err != nil {
		return nil, places.Log
	}
	return lines, places.Log
}
