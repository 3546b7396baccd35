package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// KernelName is a flag value: the name of a kernel. An empty name is refused, since as a value "" means the connected kernel.
type KernelName string

// Set implements pflag.Value.
func (k *KernelName) Set(name string) error {
	if !access.KernelName(name) {
		return errors.New("it takes the name of a kernel, such as beta")
	}
	*k = KernelName(name)
	return nil
}

// String implements pflag.Value.
func (k *KernelName) String() string { return string(*k) }

// Type implements pflag.Value.
func (k *KernelName) Type() string { return "string" }

// KernelAddress is a flag value: the address of a kernel on another machine.
type KernelAddress string

// Set implements pflag.Value.
func (k *KernelAddress) Set(text string) error {
	name, _, err := access.TLSName(text)
	if err != nil {
		return errors.New("it takes the address of a kernel, tls://HOST:PORT")
	}
	*k = KernelAddress(name)
	return nil
}

// String implements pflag.Value.
func (k *KernelAddress) String() string { return string(*k) }

// Type implements pflag.Value.
func (k *KernelAddress) Type() string { return "string" }

// kernelFlag is the flag of a verb that asks a kernel of the cluster: its name, or the address of the one that pwos connects to.
type kernelFlag struct {
	*KernelName
	address *KernelAddress
}

// Set implements pflag.Value.
func (k kernelFlag) Set(text string) error {
	if strings.Contains(text, "://") {
		return k.address.Set(text)
	}
	return k.KernelName.Set(text)
}

// KernelChoice selects the kernels of the cluster that a verb asks. The zero value selects the connected kernel.
type KernelChoice struct {
	name KernelName // this kernel; "": all applies
	All  bool       // all kernels of the cluster
}

// Flag adds --kernel to a verb.
func (k *KernelChoice) Flag(a *App, cmd *cobra.Command) {
	cmd.Flags().Var(kernelFlag{&k.name, &a.Kernel}, "kernel", "ask this kernel of the cluster, through the one that pwos connects to; or connect to the one at tls://HOST:PORT")
}

// kernelsOf returns the name of the kernel that c is connected to, "" if it is not in a cluster, and the names of the other kernels.
func kernelsOf(ctx context.Context, c *client.Client) (own string, others []string, err error) {
	status, err := InvokeAs(ctx, c, schema.ClusterStatus, &schema.ClusterStatusInput{})
	if errors.Is(err, fault.ClusterOff) || errors.Is(err, fault.Forbidden) || errors.Is(err, fault.WireUnknownSyscall) {
		return "", nil, nil
	}
	for _, m := range status.Members {
		others = append(others, m.Name)
	}
	return status.Name, others, err
}

// Asked is a kernel that a verb asks.
type Asked struct {
	*client.Client

	Kernel string         // the kernel's name, shown with its answers; "": it is the only kernel
	Own    *client.Client // the client of the connected kernel
}

// WithKernels connects to the selected kernels, to the others through the connected kernel, and calls do with them. The connected
// kernel comes first.
func (a *App) WithKernels(ctx context.Context, otherwise time.Duration, k KernelChoice, do func(ctx context.Context, list []Asked) error) error {
	return a.WithKernel(ctx, otherwise, func(ctx context.Context, c *client.Client) (err error) {
		if k.name == "" && !k.All {
			return do(ctx, []Asked{{Client: c, Own: c}})
		}
		own, others, err := kernelsOf(ctx, c)
		if err != nil {
			return err
		}
		list := []Asked{{c, own, c}}
		switch {
		case k.name != "" && string(k.name) != own:
			list, others = nil, []string{string(k.name)}
		case k.name != "":
			others = nil
		}
		for _, name := range others {
			other, failed := a.DialWith(ctx, Dialing{kernel: name})
			if failed != nil {
				return failed
			}
			defer CloseInto(&err, other)
			list = append(list, Asked{other, name, c})
		}
		return do(ctx, list)
	})
}

// Unanswered collects the errors of kernels that did not answer.
type Unanswered struct {
	Show  func(kernel string, err error) error // prints one error
	First error                                // the first error, which the verb returns at its end
}

// Pass handles the error of kernel i of several. An answered error of another kernel is shown and recorded, and the verb continues with
// the other kernels. pass returns any other error, and that of kernel 0, which ends the verb.
func (u *Unanswered) Pass(i int, kernel string, err error) error {
	if err == nil || i == 0 || client.Answered(err) == nil {
		return err
	}
	if u.First == nil {
		u.First = fault.Of(err)
	}
	return u.Show(kernel, err)
}

// AtKernels calls do with each selected kernel. The error of another kernel is shown; after the last kernel, the first of these errors is
// returned.
func (a *App) AtKernels(ctx context.Context, otherwise time.Duration, k KernelChoice, do func(ctx context.Context, one Asked) error) error {
	return a.WithKernels(ctx, otherwise, k, func(ctx context.Context, list []Asked) error {
		missing := Unanswered{Show: a.PrintUnanswered}
		for i, one := range list {
			if err := missing.Pass(i, one.Kernel, do(ctx, one)); err != nil {
				return err
			}
		}
		return missing.First
	})
}

// PrintUnanswered prints the error of a kernel that did not answer.
func (a *App) PrintUnanswered(kernel string, err error) error {
	if a.WantsJSON() {
		return a.PrintLine(view.Unanswered(kernel, fault.Of(err)))
	}
	return a.Print(view.Escaped(kernel+": "+err.Error()) + "\n")
}
