package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// budgetUsage is the help of --budget.
const budgetUsage = "most that it may use in total, as kind=amount: calls, fetches, tokens, usd, wall_seconds; separated by commas, may be repeated"

// budgetOf parses --budget: kind=amount, each kind at most once.
func budgetOf(given []string) (*schema.BudgetGrant, error) {
	if len(given) == 0 {
		return nil, nil
	}
	budget := new(schema.BudgetGrant)
	places := map[string]**int64{
		"calls": &budget.Calls, "fetches": &budget.Fetches, "tokens": &budget.Tokens, "wall_seconds": &budget.WallSeconds,
	}
	return budget, cli.EachPair("budget", "kind=amount", given, func(kind, amount string) error {
		place, known := places[kind]
		switch {
		case kind == "usd":
			usd, err := strconv.ParseFloat(amount, 64)
			if err != nil || !(usd >= 0 && usd <= 1e6) {
				return fmt.Errorf("%q is not an amount such as 2 or 0.5, of at most a million", amount)
			}
			budget.USD = &usd
			return nil
		case !known:
			return errors.New("is not a kind of budget: use calls, fetches, tokens, usd or wall_seconds")
		}
		n, err := strconv.ParseInt(amount, 10, 54)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a whole number such as 0 or 500", amount)
		}
		*place = &n
		return nil
	})
}

// confineFlags are the flags of a program's sandbox.
type confineFlags struct {
	level, net        string
	read, write, hide []string
	allowGaps         bool
}

func (f *confineFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.level, "sandbox", "", "default (what this machine supports), strict (only system files and what is named) or off (no confinement)")
	flags.StringArrayVar(&f.read, "read", nil, "a path outside its directory that it may read; may be repeated")
	flags.StringArrayVar(&f.write, "write", nil, "a path outside its directory that it may write; may be repeated")
	flags.StringArrayVar(&f.hide, "hide", nil, "a path that is hidden from it; may be repeated")
	flags.StringVar(&f.net, "net", "", "none, kernel or open: no network, through the kernel, as the kernel's user (default kernel; none with strict, open with off)")
	flags.BoolVar(&f.allowGaps, "allow-gaps", false, "run it even if this machine cannot hide the kernel's state and keys")
}

// sandbox returns the requested sandbox; nil means the default.
func (f *confineFlags) sandbox(cmd *cobra.Command) (*schema.Sandbox, error) {
	s := &schema.Sandbox{Level: cli.TextGiven(cmd, "sandbox", f.level), Net: cli.TextGiven(cmd, "net", f.net)}
	for _, list := range []struct {
		flag string
		from []string
		to   *[]string
	}{{"read", f.read, &s.Read}, {"write", f.write, &s.Write}, {"hide", f.hide, &s.Hide}} {
		for _, path := range list.from {
			if path == "" {
				return nil, fmt.Errorf("--%s needs a path", list.flag)
			}
			path, err := filepath.Abs(path)
			if err != nil {
				return nil, fmt.Errorf("find --%s: %w", list.flag, err)
			}
			if real, err := filepath.EvalSymlinks(path); err == nil && list.flag != "hide" { // the kernel accepts no links here
				path = real
			}
			*list.to = append(*list.to, path)
		}
	}
	if f.allowGaps {
		s.AllowGaps = &f.allowGaps
	}
	if s.Level == nil && s.Net == nil && s.Read == nil && s.Write == nil && s.Hide == nil && s.AllowGaps == nil {
		return nil, nil
	}
	return s, nil
}

// httpFlags are the flags of a grant for HTTP requests.
type httpFlags struct {
	hosts []string
	plain bool
	open  bool
}

func (f *httpFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.hosts, "host", nil, "server that it may reach: a name, *.name for all names below it, an address, or * for any name; with or without a port; may be repeated")
	cmd.Flags().BoolVar(&f.plain, "http-plain", false, "also allow plain http:")
	cmd.Flags().BoolVar(&f.open, "http-open", false, "open sealed header values for it")
}

// grant returns the grant that the flags describe; nil if none of them was given.
func (f *httpFlags) grant() *schema.HTTPGrant {
	if f.hosts == nil && !f.plain && !f.open {
		return nil
	}
	return &schema.HTTPGrant{Hosts: append([]string{}, f.hosts...), Plain: f.plain, Open: f.open}
}

// The functions below parse numbers and names of the command line. Their errors are usage errors.

// operatorName stands for PID 0 where a mailbox is expected.
const operatorName = "operator"

// mailboxOf parses a mailbox: operatorName, or a PID that is least or greater.
func mailboxOf(text string, least int64) (int64, error) {
	if text == operatorName {
		return 0, nil
	}
	return cli.PIDOf(text, least)
}

// addressOf parses the receiver of a message: a mailbox of this kernel, or with @NAME of another one; kernel is nil for this one.
func addressOf(text string) (pid int64, kernel *string, err error) {
	process, kernel, err := processAt(text)
	if err == nil {
		pid, err = mailboxOf(process, 0)
	}
	return pid, kernel, err
}

// processAt splits a text such as 12@beta into a process and a kernel; kernel is nil without @.
func processAt(text string) (process string, kernel *string, err error) {
	process, name, abroad := strings.Cut(text, "@")
	if !abroad {
		return process, nil, nil
	}
	if !access.KernelName(name) {
		return "", nil, fmt.Errorf("%q is not the name of a kernel: 12@beta is process 12 of the kernel beta", name)
	}
	return process, &name, nil
}

// quotasOf parses --quota: resource=amount, each resource at most once.
func quotasOf(given []string) (map[string]float64, error) {
	if len(given) == 0 {
		return nil, nil
	}
	quotas := make(map[string]float64, len(given))
	err := cli.EachPair("quota", "resource=amount", given, func(resource, amount string) (err error) {
		quotas[resource], err = amountOf(amount)
		return err
	})
	if err != nil {
		return nil, err
	}
	return quotas, nil
}

// amountOf parses an amount: a JSON number of at least 0 (PROTOCOL 5).
func amountOf(text string) (float64, error) {
	if schema.Valid([]byte(text)) {
		if n, ok := view.As[float64](schema.Value(text)); ok && n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%q is not an amount: give a number of at least 0", text)
}

// limitsOf parses --limit: name=number, each name at most once.
func limitsOf(given []string) (*schema.Limits, error) {
	if len(given) == 0 {
		return nil, nil
	}
	limits := new(schema.Limits)
	places := map[string]**int64{
		"cpu_seconds":  &limits.CPUSeconds,
		"wall_seconds": &limits.WallSeconds,
		"memory_bytes": &limits.MemoryBytes,
		"open_files":   &limits.OpenFiles,
		"processes":    &limits.Processes,
	}
	return limits, cli.EachPair("limit", "name=number", given, func(name, amount string) error {
		place, known := places[name]
		if !known {
			return errors.New("is not a limit: use cpu_seconds, wall_seconds, memory_bytes, open_files or processes")
		}
		n, err := countOf(amount)
		*place = &n
		return err
	})
}

// countOf parses a whole number of at least 1, with an optional suffix K, M or G (powers of 1024).
func countOf(text string) (int64, error) {
	factor := int64(1)
	digits := strings.TrimRight(text, "KMG")
	switch text[len(digits):] {
	case "":
	case "K":
		factor = 1 << 10
	case "M":
		factor = 1 << 20
	case "G":
		factor = 1 << 30
	default:
		return 0, fmt.Errorf("%q is not a number such as 10 or 256M", text)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a number such as 10 or 256M", text)
	}
	return n * factor, nil
}
