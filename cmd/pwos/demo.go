package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/examples"
	"github.com/promptware-os/pwos/schema"
)

// demoTimeout bounds the whole demo; it usually takes two seconds, one of which is the pause before a restart.
const demoTimeout = 10 * time.Second

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "boot a kernel, run two agents in it, show what happens, take it down",
		Long: `demo boots a kernel of its own in a temporary place and runs two agents in it, shell
programs of a few lines (examples/demo). They talk; one crashes, is started again and
finds its work where it left it; one tries what it may not. What the kernel recorded
of that is shown as the story of what caused what, and checked. Then all of it is
taken down. It touches no kernel that runs, and leaves nothing behind.

With --json the story is printed, a line of JSON an entry of the record.`,
		Example: `  pwos demo
  pwos demo --json
  NO_COLOR=1 pwos demo | less`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demo(cmd.Context())
		},
	}
}

func (a *app) demo(ctx context.Context) error {
	ctx, cancel := a.bound(ctx, demoTimeout)
	defer cancel()
	dir, err := demoDir()
	if err != nil {
		return err
	}
	d := &demo{app: a, dir: dir}
	if err := errors.Join(d.perform(ctx), os.RemoveAll(dir)); err != nil {
		return err
	}
	return d.curtain()
}

// perform boots the kernel, plays, and waits for the kernel's end. Its agents do not outlive it.
func (d *demo) perform(ctx context.Context) error {
	daemon, err := launchIn(ctx, d.dir)
	if err != nil {
		return err
	}
	if err := d.play(ctx, daemon.PID()); err != nil {
		return errors.Join(err, daemon.Kill(), quietWait(daemon))
	}
	if err := daemon.Wait(); err != nil {
		return fmt.Errorf("end demo kernel: %w", err)
	}
	return nil
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

// quietWait waits for a kernel that was killed: that it did not end well is known.
func quietWait(daemon *client.Daemon) error {
	_ = daemon.Wait()
	return nil
}

// demo is a demo under way.
type demo struct {
	app *app
	dir string
	err error // the first of stdout
}

func (d *demo) options() client.Options {
	return client.Options{RuntimeDir: filepath.Join(d.dir, "run")}
}

// play is the demo from the kernel's first message to its last.
func (d *demo) play(ctx context.Context, kernelPID int) (err error) {
	c, err := client.Dial(ctx, d.options())
	if err != nil {
		return err
	}
	defer closeInto(&err, c)
	d.opening(kernelPID)
	clerk := &role{name: "clerk", script: examples.Clerk(), allow: []string{"Ipc.Receive", "Ipc.Ack", "Syscall.SendMsg"}, restart: "on-failure"}
	boss := &role{name: "boss", script: examples.Boss(), allow: []string{"Ipc.Receive", "Syscall.SendMsg"}, restart: "never"}
	if err := d.cast(ctx, c, clerk); err != nil {
		return err
	}
	boss.args = []string{fmt.Sprint(clerk.pid)}
	if err := d.cast(ctx, c, boss); err != nil {
		return err
	}
	if err := d.listen(ctx, c, boss, clerk); err != nil {
		return err
	}
	s, err := recall(ctx, c, map[int64]string{clerk.pid: clerk.name, boss.pid: boss.name})
	if err != nil {
		return err
	}
	if err := d.story(s); err != nil {
		return err
	}
	proof, err := invokeAs[schema.AuditVerifyOutput](ctx, c, "Audit.Verify", &schema.AuditVerifyInput{})
	if err != nil {
		return err
	}
	if !proof.OK {
		return &verdict{exitIntegrity, fmt.Errorf("verify the demo's journal: %s", proof.Broken)}
	}
	d.verified(&proof)
	reason := "the demo is over"
	if _, err := invoke(ctx, c, "Syscall.Terminate", &schema.TerminateInput{TargetPID: clerk.pid, Reason: &reason}); err != nil {
		return err
	}
	if _, err := c.Shutdown(ctx); err != nil {
		return err
	}
	return d.err
}
