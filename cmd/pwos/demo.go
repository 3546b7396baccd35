package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/examples"
)

// demoTimeout bounds the whole demo; it usually takes a moment.
const demoTimeout = 10 * time.Second

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "boot a kernel, talk to it, show the conversation, take it down",
		Long: `demo boots a kernel of its own in a temporary place, sends it a recorded session
(examples/session.ndjson), shows each line with its answer, and takes the kernel
down again. It touches no kernel that runs, and leaves nothing behind.`,
		Example: `  pwos demo
  pwos demo --json
  NO_COLOR=1 pwos demo | less`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demo(cmd.Context())
		},
	}
}

func (a *app) demo(ctx context.Context) (err error) {
	ctx, cancel := a.bound(ctx, demoTimeout)
	defer cancel()
	dir, err := demoDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	daemon, err := launchIn(ctx, dir)
	if err != nil {
		return err
	}
	answers, err := converse(ctx, filepath.Join(dir, "run"))
	if err != nil {
		return errors.Join(err, daemon.Kill(), quietWait(daemon))
	}
	if err := daemon.Wait(); err != nil {
		return fmt.Errorf("end demo kernel: %w", err)
	}
	turns, err := pair(examples.Session(), answers)
	if err != nil {
		return err
	}
	return a.showTurns(turns)
}

// demoDir makes a temporary directory whose path is short enough for sockets.
func demoDir() (string, error) {
	base := os.TempDir()
	if len(base) > 60 {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "pwos-demo-")
	if err != nil {
		return "", fmt.Errorf("make demo directory: %w", err)
	}
	return dir, nil
}

// launchIn starts a kernel that knows no place but dir.
func launchIn(ctx context.Context, dir string) (*client.Daemon, error) {
	command, err := daemonCommand()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		return nil, fmt.Errorf("write demo configuration: %w", err)
	}
	command.Env = []string{"HOME=" + dir, "PWOS_STATE_DIR=" + filepath.Join(dir, "state"), "PWOS_CONFIG=" + config}
	return client.Launch(ctx, command, filepath.Join(dir, "run"))
}

// converse sends the whole session through one pipe, then ends the kernel.
func converse(ctx context.Context, runtimeDir string) (answers []string, err error) {
	options := client.Options{RuntimeDir: runtimeDir}
	c, err := client.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	defer closeInto(&err, c)
	var in strings.Builder
	for _, frame := range examples.Session() {
		in.WriteString(frame.Line + "\n")
	}
	var out bytes.Buffer
	if _, err := c.Stream(ctx, strings.NewReader(in.String()), &out); err != nil {
		return nil, err
	}
	last, err := client.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	defer closeInto(&err, last)
	if _, err := last.Shutdown(ctx); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), nil
}

// quietWait waits for a kernel that was killed: that it did not end well is known.
func quietWait(daemon *client.Daemon) error {
	_ = daemon.Wait()
	return nil
}
