package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// kernelChoice says which kernels of the cluster a verb asks. The zero value is the one that it connects to.
type kernelChoice struct {
	name string // one; "": see all
	all  bool   // of a cluster: all of them
}

// flag adds --kernel to a verb.
func (k *kernelChoice) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.name, "kernel", "", "ask this kernel of the cluster, through the one that pwos connects to")
}

// kernelsOf returns the name of the kernel that a client is connected to, "" if it is in no cluster, and the names of the others.
func kernelsOf(ctx context.Context, c *client.Client) (own string, others []string, err error) {
	status, err := invokeAs(ctx, c, schema.ClusterStatus, &schema.ClusterStatusInput{})
	if errors.Is(err, fault.ClusterOff) || errors.Is(err, fault.Forbidden) || errors.Is(err, fault.WireUnknownSyscall) {
		return "", nil, nil
	}
	for _, m := range status.Members {
		others = append(others, m.Name)
	}
	return status.Name, others, err
}

// atKernels calls do for each chosen kernel: with a client that asks it, and its name if several are asked, or another than the
// one that pwos connects to. A kernel that does not answer is shown, and the first of their errors is returned in the end.
func (a *app) atKernels(
	ctx context.Context, otherwise time.Duration, k kernelChoice, do func(ctx context.Context, c *client.Client, kernel string) error,
) error {
	if k.name != "" && !access.KernelName(k.name) {
		return misuse("pwos", errors.New("--kernel takes the name of a kernel, such as beta"))
	}
	var others []string
	err := a.withKernel(ctx, otherwise, func(ctx context.Context, c *client.Client) error {
		if k.name == "" && !k.all {
			return do(ctx, c, "")
		}
		own, all, err := kernelsOf(ctx, c)
		switch {
		case err != nil:
			return err
		case k.name != "" && k.name != own:
			others = []string{k.name}
			return nil
		case k.all && k.name == "":
			others = all
		}
		return do(ctx, c, own)
	})
	if err != nil {
		return err
	}
	var first error
	for _, name := range others {
		dial := func(ctx context.Context) (*client.Client, error) { return a.dialWith(ctx, dialing{kernel: name}) }
		err := a.with(ctx, otherwise, dial, func(ctx context.Context, c *client.Client) error { return do(ctx, c, name) })
		if client.Answered(err) == nil {
			if err != nil {
				return err
			}
			continue
		}
		if k.name != "" {
			return err
		}
		if err := a.printUnanswered(name, err); err != nil {
			return err
		}
		if first == nil {
			first = fault.Of(err)
		}
	}
	return first
}

// printUnanswered shows a kernel that did not answer.
func (a *app) printUnanswered(kernel string, err error) error {
	if a.wantsJSON() {
		return a.printLine(view.Unanswered(kernel, fault.Of(err)))
	}
	return a.print(view.Escaped(kernel+": "+err.Error()) + "\n")
}
