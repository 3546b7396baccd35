package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Daemon is a daemon that this process has started.
type Daemon struct {
	cmd *exec.Cmd
}

// Launch starts command as the daemon of the runtime directory dir, in a session of its own, and returns when it says
// that it is ready. Nothing but the readiness pipe is inherited: not the terminal, not the working directory, no
// descriptor above 2, all of which are marked close-on-exec for this process. What it prints goes to the log in dir.
//
// It returns a fault.DaemonLaunch, which wraps the cause of ctx's end if that was the reason, and then the daemon is gone.
func Launch(ctx context.Context, command Command, dir string) (*Daemon, error) {
	places := unixsock.PlacesIn(dir)
	if err := unixsock.EnsurePrivateDir(places.Dir); err != nil {
		return nil, err
	}
	return launch(ctx, &command, places)
}

func launch(ctx context.Context, command *Command, places unixsock.Places) (*Daemon, error) {
	log, err := openLog(places.Log)
	if err != nil {
		return nil, fmt.Errorf("open daemon log: %w", err)
	}
	defer log.file.Close() // the daemon has its own descriptor; ours wrote nothing
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

// explain sees a daemon off that did not become ready, and says why it did not. One that has said so itself is given the
// time to log it, until ctx ends.
func (d *Daemon) explain(ctx context.Context, err error, log *daemonLog) error {
	var endErr error
	if errors.Is(err, fault.DaemonLaunch) || errors.Is(err, errRunning) || errors.Is(err, errSilent) {
		stop := context.AfterFunc(ctx, func() { _ = d.Kill() }) // fails where it has ended by itself
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

// daemonCommand is the process to be: in its own session, so that no terminal's end takes it along (BRIDGE 4.5.2).
func daemonCommand(command *Command, places unixsock.Places, log, told *os.File) *exec.Cmd {
	cmd := exec.Command(command.Path, command.Args...)
	cmd.Dir = "/"
	cmd.Env = daemonEnv(slices.Concat(os.Environ(), command.Env), places.Dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{told} // descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// daemonEnv is the environment of a daemon that serves dir. It works in another directory than we do, so relative places
// are made absolute; what a service manager told us it did not tell the daemon.
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

// sealable is how many descriptors may have come to us from whoever started us: shells hand down low numbers.
const sealable = 1024

// sealDescriptors keeps what we inherited from being inherited further. A daemon that held on to the write end of
// somebody's pipe would keep its reader waiting for ever.
func sealDescriptors() {
	for fd := 3; fd < sealable; fd++ {
		unix.CloseOnExec(fd)
	}
}

// PID returns the daemon's process number.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Wait waits until the daemon has ended. It returns an *exec.ExitError where that was a failure.
func (d *Daemon) Wait() error { return d.cmd.Wait() }

// Kill ends the daemon without ceremony; Wait comes next.
func (d *Daemon) Kill() error {
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill daemon: %w", err)
	}
	return nil
}

// abort ends the daemon and waits for its end.
func (d *Daemon) abort() error {
	if err := d.Kill(); err != nil {
		return err
	}
	return d.end()
}

// end waits for the daemon's end, whatever its exit status.
func (d *Daemon) end() error {
	if err := d.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return fmt.Errorf("wait for daemon: %w", err)
	}
	return nil
}

// release lets go of the daemon, which outlives us. Should it end before us, its process stays defunct until we end too.
func (d *Daemon) release() {
	_ = d.cmd.Process.Release() // on Unix it always succeeds
}
