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
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/examples"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// demoTimeout is the default time limit of the demo. It usually takes two seconds, half of them the pause before a restart.
const demoTimeout = 10 * time.Second

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "boot a kernel, run two agents in it, show what happens, shut it down",
		Long: `demo boots a separate kernel in a temporary directory and runs two agents in it, shell
scripts of a few lines (examples/demo). They talk. One crashes, is started again, and
continues its work. One tries a call that it was not granted. Then demo shows what the
kernel recorded, as a tree of causes, verifies the record, and removes
everything. It does not touch a running kernel.

With --json it prints only the story, one line of JSON for each entry of the record.`,
		Example: `  pwos demo
  pwos demo --json
  NO_COLOR=1 pwos demo | less`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demo(cmd.Context())
		},
	}
}

func (a *app) demo(ctx context.Context) error {
	ctx, cancel := a.Bound(ctx, demoTimeout)
	defer cancel()
	dir, err := temporaryDir("pwos-demo-")
	if err != nil {
		return err
	}
	d := &demo{app: a, dir: dir}
	if err := errors.Join(d.perform(ctx), os.RemoveAll(dir)); err != nil {
		return err
	}
	return d.curtain()
}

// perform starts the kernel, plays the demo, and waits until the kernel and so the agents have ended.
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

// demo is the state of a running demo.
type demo struct {
	app *app
	dir string
	err error // the first write error of stdout
}

func (d *demo) options() client.Options { return ownOptions(d.dir) }

// play runs the demo from its connection to the kernel's shutdown.
func (d *demo) play(ctx context.Context, kernelPID int) (err error) {
	c, err := client.Dial(ctx, d.options())
	if err != nil {
		return err
	}
	defer cli.CloseInto(&err, c)
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
	s, err := d.recall(ctx, c)
	if err != nil {
		return err
	}
	if err := d.story(s); err != nil {
		return err
	}
	proof, err := cli.InvokeAs(ctx, c, schema.AuditVerify, &schema.AuditVerifyInput{})
	if err != nil {
		return err
	}
	if !proof.OK {
		return fault.StateDamaged.New("verify the demo's journal: %s", proof.Broken)
	}
	d.verified(&proof)
	reason := "the demo is over"
	if _, err := cli.Invoke(ctx, c, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: clerk.pid, Reason: &reason}); err != nil {
		return err
	}
	if _, err := c.Shutdown(ctx); err != nil {
		return err
	}
	return d.err
}

// temporaryDir creates a temporary directory whose path is short enough for Unix sockets.
func temporaryDir(prefix string) (string, error) {
	base := os.TempDir()
	if len(base) > 60 {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return "", fmt.Errorf("make temporary directory: %w", err)
	}
	return dir, nil
}

// launchIn starts a kernel with all directories in dir. Clients connect with ownOptions(dir).
func launchIn(ctx context.Context, dir string) (*client.Daemon, error) {
	command, err := cli.DaemonCommand()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		return nil, fmt.Errorf("write configuration of own kernel: %w", err)
	}
	command.Env = []string{"HOME=" + dir, "PWOS_STATE_DIR=" + filepath.Join(dir, "state"), "PWOS_CONFIG=" + config}
	return client.Launch(ctx, command, ownOptions(dir).RuntimeDir)
}

// ownOptions returns the client options for the kernel that launchIn started in dir.
func ownOptions(dir string) client.Options {
	return client.Options{RuntimeDir: filepath.Join(dir, "run")}
}

// quietWait waits for a killed kernel. It ignores the exit status.
func quietWait(daemon *client.Daemon) error {
	_ = daemon.Wait()
	return nil
}

// recall reads the whole record as a story.
func (d *demo) recall(ctx context.Context, c *client.Client) (story []view.Sentence, err error) {
	t := d.app.newTimeline([]cli.Asked{{Client: c}}, auditQuestion{queries: true})
	err = t.tell(ctx, func(s *view.Sentence) error {
		story = append(story, *s)
		return nil
	})
	return story, err
}
