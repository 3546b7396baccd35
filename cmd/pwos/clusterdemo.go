package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newClusterDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo DIR",
		Short: "run a bus and two kernels, alpha and beta",
		Long: `demo makes DIR, and runs a bus and two kernels of one cluster there until it
is interrupted. They may send each other messages, spawn and end processes at each other, and
their operators see both. When both serve, it prints one line of JSON: for each name its runtime_dir,
state_dir and config, which other commands take as PWOS_RUNTIME_DIR, PWOS_STATE_DIR and
PWOS_CONFIG. It needs the program pwos-bus, beside pwos or in PATH. DIR stays; the next demo
there continues with it.`,
		Example: `  pwos cluster demo ./two`,
		Args:    cli.Arguments(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.clusterDemo(cmd.Context(), args[0]) },
	}
}

// demoKernels are the names of the demo's kernels.
var demoKernels = []string{"alpha", "beta"}

func (a *app) clusterDemo(ctx context.Context, dir string) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("find directory: %w", err)
	}
	members := ""
	for _, name := range demoKernels {
		state := filepath.Join(dir, name, "state")
		if err := os.MkdirAll(state, 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
		key, err := access.OpenHostKey(state)
		if err != nil {
			return err
		}
		members += `kernel="` + name + `",allow="Syscall.SendMsg,Syscall.Spawn,Syscall.Terminate",role="viewer" ` + key.Public() + "\n"
	}
	file := filepath.Join(dir, "members")
	if err := replace.File(file, []byte(members), 0o600); err != nil {
		return fmt.Errorf("write members: %w", err)
	}
	bus, address, err := startBus(filepath.Join(dir, "bus"), file, a.Stderr)
	if err != nil {
		return err
	}
	defer func() {
		_ = bus.Process.Signal(syscall.SIGTERM)
		_ = bus.Wait() // the error only says that the signal ended it
	}()
	line := view.Object(nil)
	for _, name := range demoKernels {
		at := filepath.Join(dir, name)
		daemon, failed := demoKernel(ctx, at, fmt.Sprintf("[cluster]\nname = %q\nbus = %q\nmembers = %q\n", name, address, file))
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, endKernel(at, daemon)) }()
		line = line.Raw(name, view.Object(nil).Text("runtime_dir", filepath.Join(at, "run")).
			Text("state_dir", filepath.Join(at, "state")).Text("config", filepath.Join(at, "config.toml")).Close())
	}
	for _, name := range demoKernels {
		if err := onBus(ctx, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := a.PrintLine(line.Close()); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// startBus starts pwos-bus and returns its address, which it prints when it is ready.
func startBus(dir, members string, stderr *os.File) (*exec.Cmd, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", fmt.Errorf("find own program: %w", err)
	}
	program := filepath.Join(filepath.Dir(self), "pwos-bus")
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("pwos-bus"); err != nil {
			return nil, "", fault.ClusterBus.New("the program pwos-bus is neither beside %s nor in PATH: build it with \"go build ./cmd/pwos-bus\"", self)
		}
	}
	bus := exec.Command(program, "--dir", dir, "--members", members, "--listen", "127.0.0.1:0")
	bus.Stderr = stderr
	bus.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal must not end it before the kernels
	out, err := bus.StdoutPipe()
	if err == nil {
		err = bus.Start()
	}
	if err != nil {
		return nil, "", fmt.Errorf("start bus: %w", err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = bus.Wait() // it has ended and printed the reason to stderr
		return nil, "", fault.ClusterBus.New("pwos-bus ended before it was ready")
	}
	return bus, strings.TrimSpace(address), nil
}

// demoKernel starts a kernel with all directories in dir.
func demoKernel(ctx context.Context, dir, settings string) (*client.Daemon, error) {
	config := filepath.Join(dir, "config.toml")
	if err := replace.File(config, []byte(settings), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	command, err := cli.DaemonCommand()
	if err != nil {
		return nil, err
	}
	command.Env = []string{"HOME=" + dir, "PWOS_STATE_DIR=" + filepath.Join(dir, "state"), "PWOS_CONFIG=" + config}
	return client.Launch(ctx, command, ownOptions(dir).RuntimeDir)
}

// onBus waits until the kernel in dir has connected to the bus.
func onBus(ctx context.Context, dir string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, busPatience, fault.ClusterBus.New("the kernel in %s does not reach the bus", dir))
	defer cancel()
	c, err := client.Dial(ctx, ownOptions(dir))
	if err != nil {
		return err
	}
	defer cli.CloseInto(&err, c)
	for {
		status, err := cli.InvokeAs(ctx, c, schema.ClusterStatus, &schema.ClusterStatusInput{})
		if err != nil || status.Connected {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// endKernel shuts down the kernel in dir and waits for its process.
func endKernel(dir string, daemon *client.Daemon) error {
	ctx, cancel := context.WithTimeout(context.Background(), cli.UsualTimeout)
	defer cancel()
	c, err := client.Dial(ctx, ownOptions(dir))
	if err == nil {
		_, err = c.Shutdown(ctx)
		err = errors.Join(err, c.Close())
	}
	return errors.Join(err, daemon.Wait())
}
