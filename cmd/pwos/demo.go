package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/examples"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
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

// demo is a demo under way.
type demo struct {
	app *app
	dir string
	err error // the first of stdout
}

func (d *demo) options() client.Options { return ownOptions(d.dir) }

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
	proof, err := invokeAs(ctx, c, schema.AuditVerify, &schema.AuditVerifyInput{})
	if err != nil {
		return err
	}
	if !proof.OK {
		return fault.StateDamaged.New("verify the demo's journal: %s", proof.Broken)
	}
	d.verified(&proof)
	reason := "the demo is over"
	if _, err := invoke(ctx, c, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: clerk.pid, Reason: &reason}); err != nil {
		return err
	}
	if _, err := c.Shutdown(ctx); err != nil {
		return err
	}
	return d.err
}
