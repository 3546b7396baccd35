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

// kernelName is a flag value: the name of a kernel. An empty name is refused, since as a value "" means the connected kernel.
type kernelName string

// Set implements pflag.Value.
func (k *kernelName) Set(name string) error {
	if !access.KernelName(name) {
		return errors.New("it takes the name of a kernel, such as beta")
	}
	*k = kernelName(name)
	return nil
}

// String implements pflag.Value.
func (k *kernelName) String() string { return string(*k) }

// Type implements pflag.Value.
func (k *kernelName) Type() string { return "string" }

// kernelChoice selects the kernels of the cluster that a verb asks. The zero value selects the connected kernel.
type kernelChoice struct {
	name kernelName // this kernel; "": all applies
	all  bool       // all kernels of the cluster
}

// flag adds --kernel to a verb.
func (k *kernelChoice) flag(cmd *cobra.Command) {
	cmd.Flags().Var(&k.name, "kernel", "ask this kernel of the cluster, through the one that pwos connects to")
}

// kernelsOf returns the name of the kernel that c is connected to, "" if it is not in a cluster, and the names of the other kernels.
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

// asked is a kernel that a verb asks.
type asked struct {
	*client.Client

	kernel string         // the kernel's name, shown with its answers; "": it is the only kernel
	own    *client.Client // the client of the connected kernel
}

// withKernels connects to the selected kernels, to the others through the connected kernel, and calls do with them. The connected
// kernel comes first.
func (a *app) withKernels(ctx context.Context, otherwise time.Duration, k kernelChoice, do func(ctx context.Context, list []asked) error) error {
	return a.withKernel(ctx, otherwise, func(ctx context.Context, c *client.Client) (err error) {
		if k.name == "" && !k.all {
			return do(ctx, []asked{{Client: c, own: c}})
		}
		own, others, err := kernelsOf(ctx, c)
		if err != nil {
			return err
		}
		list := []asked{{c, own, c}}
		switch {
		case k.name != "" && string(k.name) != own:
			list, others = nil, []string{string(k.name)}
		case k.name != "":
			others = nil
		}
		for _, name := range others {
			other, failed := a.dialWith(ctx, dialing{kernel: name})
			if failed != nil {
				return failed
			}
			defer closeInto(&err, other)
			list = append(list, asked{other, name, c})
		}
		return do(ctx, list)
	})
}

// unanswered collects the errors of kernels that did not answer.
type unanswered struct {
	show  func(kernel string, err error) error // prints one error
	first error                                // the first error, which the verb returns at its end
}

// pass handles the error of kernel i of several. An answered error of another kernel is shown and recorded, and the verb continues with
// the other kernels. pass returns any other error, and that of kernel 0, which ends the verb.
func (u *unanswered) pass(i int, kernel string, err error) error {
	if err == nil || i == 0 || client.Answered(err) == nil {
		return err
	}
	if u.first == nil {
		u.first = fault.Of(err)
	}
	return u.show(kernel, err)
}

// atKernels calls do with each selected kernel. The error of another kernel is shown; after the last kernel, the first of these errors is
// returned.
func (a *app) atKernels(ctx context.Context, otherwise time.Duration, k kernelChoice, do func(ctx context.Context, one asked) error) error {
	return a.withKernels(ctx, otherwise, k, func(ctx context.Context, list []asked) error {
		missing := unanswered{show: a.printUnanswered}
		for i, one := range list {
			if err := missing.pass(i, one.kernel, do(ctx, one)); err != nil {
				return err
			}
		}
		return missing.first
	})
}

// printUnanswered prints the error of a kernel that did not answer.
func (a *app) printUnanswered(kernel string, err error) error {
	if a.wantsJSON() {
		return a.printLine(view.Unanswered(kernel, fault.Of(err)))
	}
	return a.print(view.Escaped(kernel+": "+err.Error()) + "\n")
}
