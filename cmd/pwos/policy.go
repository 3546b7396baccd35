package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newPolicy(a *app) *cobra.Command {
	return cli.Group("policy", "manage the rules about the arguments of agents' calls",
		`policy is about the rules that narrow what agents may do: which keys, hosts, paths and
amounts. They are written in Cedar, in policy.cedar and policy.d/*.cedar beside the
configuration of the kernel. Without these files there is no policy.`,
		`  pwos policy check              # are the files valid
  pwos policy test --since 24h   # what would the rules have decided
  pwos policy allow --from 1204  # an exception for a refused call
  pwos policy reload             # make the kernel load the files
  pwos policy show               # the rules in force, and their counts`,
		newPolicyCheck(a), newPolicyTest(a), newPolicyAllow(a), newPolicyReload(a), newPolicyShow(a))
}

func newPolicyAllow(a *app) *cobra.Command {
	var from int64
	var write bool
	cmd := &cobra.Command{
		Use:   "allow --from SEQ",
		Short: "make the narrowest exception for a refused call",
		Long: `allow finds the call of an entry of the journal, and the rules beside the configuration
that refuse it, and prints the narrowest change that lets it through: an exception for its
agent, its syscall, and the arguments that the rule looks at. With --write it changes the
files, and makes the running kernel read them again.`,
		Example: `  pwos policy allow --from 1204
  pwos policy allow --from 1204 --write`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == 0 {
				return cli.Usage(cmd, errors.New("--from is required: give the number of the call's entry, as pwos audit log shows it"))
			}
			return a.policyAllow(cmd.Context(), uint64(from), write)
		},
	}
	cmd.Flags().Var(cli.EntryFlag(&from), "from", "the entry of the refused call")
	cmd.Flags().BoolVar(&write, "write", false, "apply the change: write it to the files, and reload them")
	return cmd
}

func (a *app) policyAllow(ctx context.Context, from uint64, write bool) error {
	config := client.ConfigFile()
	files, err := policy.Read(config)
	if err != nil {
		return err
	}
	forms, err := offline.PolicyForms(config, os.Getenv)
	if err != nil {
		return err
	}
	dir, err := cli.JournalDir()
	if err != nil {
		return err
	}
	reader := journal.NewReader(nil, dir, journal.ReaderOptions{})
	past := policy.NewPast(nil, forms)
	entry, err := entryAt(ctx, reader, past, from)
	if err := errors.Join(err, reader.Close()); err != nil {
		return err
	}
	changed, rules, err := past.Except(files, entry)
	if err != nil {
		return err
	}
	if len(rules) == 0 {
		a.Say("no rule refuses this call")
		return nil
	}
	for _, r := range rules {
		if err := a.PrintLine([]byte(fmt.Sprintf("%s: rule %q", r.At(), r.ID))); err != nil {
			return err
		}
	}
	written := false
	for i, f := range changed {
		if string(f.Text) == string(files[i].Text) {
			continue
		}
		before := strings.Split(string(files[i].Text), "\n")
		for line := range strings.Lines(string(f.Text)) {
			line = strings.TrimSuffix(line, "\n")
			if slices.Contains(before, line) || !strings.HasPrefix(line, "unless") {
				continue
			}
			if err := a.PrintLine([]byte("+ " + line)); err != nil {
				return err
			}
		}
		if write {
			if err := replaceFile(filepath.Join(filepath.Dir(config), filepath.FromSlash(f.Name)), f.Text); err != nil {
				return err
			}
			a.Say("%s was changed", f.Name)
			written = true
		}
	}
	if written {
		return a.reloadPolicy(ctx)
	}
	return nil
}

// reloadPolicy makes the kernel reload its policy files; if none runs, it only prints that.
func (a *app) reloadPolicy(ctx context.Context) error {
	ctx, cancel := a.Bound(ctx, cli.UsualTimeout)
	defer cancel()
	c, err := a.DialRunning(ctx)
	if errors.Is(err, fault.DaemonNotRunning) {
		a.Say("no kernel runs: the next one begins with the changed files")
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := client.Call(ctx, c, schema.PolicyReload, &schema.PolicyReloadInput{}); err != nil {
		return fmt.Errorf("the files were changed, but the running kernel keeps the rules that it has: %w", err)
	}
	return nil
}

// entryAt reads the journal up to entry seq, and adds the entries before it to past.
func entryAt(ctx context.Context, r *journal.Reader, past *policy.Past, seq uint64) (*policy.Entry, error) {
	for {
		record, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil, fault.UsageInvalid.New("the journal has no entry %d", seq)
		}
		if err != nil {
			return nil, err
		}
		e := &policy.Entry{PID: record.PID, Tick: record.Tick, Time: record.Time, Origin: record.Origin, Conn: record.Conn, Request: record.Request, Outcome: record.Outcome}
		if record.Seq == seq {
			e.Request, e.Outcome = slices.Clone(e.Request), slices.Clone(e.Outcome) // the reader reuses the record's memory
			return e, nil
		}
		if _, _, _, err := past.Judge(e, false); err != nil {
			return nil, fmt.Errorf("read entry %d: %w", record.Seq, err)
		}
	}
}

// replaceFile replaces a file atomically. It keeps the mode and follows a symbolic link.
func replaceFile(path string, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("change policy: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return fmt.Errorf("change policy: %w", err)
	}
	mode := info.Mode().Perm()
	if err := replace.File(path, text, mode); err != nil {
		return fmt.Errorf("change policy: %w", err)
	}
	return nil
}

func newPolicyCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE…]",
		Short: "check rules without a kernel",
		Long: `check reads rules and reports their faults as FILE:LINE: text: invalid
Cedar, names and types that no syscall has, and rules that can never match. It needs no
kernel. Default: policy.cedar and policy.d/*.cedar beside the configuration.

Exit status: 0 the rules can be loaded, 2 they cannot.`,
		Example: `  pwos policy check
  pwos policy check new.cedar`,
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := a.policyOf(args)
			return err
		},
	}
}

// policyOf compiles the rules of the named files, or of the configuration if none is named. It prints problems to stderr.
func (a *app) policyOf(paths []string) (*policy.Set, error) {
	var files []policy.File
	var err error
	if len(paths) > 0 {
		files, err = policy.ReadFiles(paths)
	} else {
		files, err = policy.Read(client.ConfigFile())
	}
	if err != nil {
		return nil, cli.Misuse("pwos policy check", err)
	}
	set, problems := policy.Compile(files)
	wrong := 0
	for _, p := range problems {
		if _, err := fmt.Fprintln(a.Stderr, p); err != nil {
			return nil, fmt.Errorf("write output: %w", err)
		}
		if !p.Warning {
			wrong++
		}
	}
	switch {
	case wrong > 0:
		a.Say("the policy is not valid")
		return nil, cli.ExitStatus(fault.ExitUsage)
	case len(files) == 0:
		a.Say("there is no policy: neither policy.cedar nor policy.d/*.cedar exists")
		return nil, nil
	case set == nil:
		return nil, errors.New("check policy: valid files compiled to no rules")
	}
	a.Say("%d rules in %d files are valid", len(set.Rules), len(files))
	return set, nil
}

func newPolicyReload(a *app) *cobra.Command {
	return a.OneCall(&cobra.Command{
		Use:   "reload",
		Short: "make the kernel read the rules again",
		Long: `reload makes the running kernel read its policy files again. It loads all of them,
or, if one is invalid, none, and names the invalid line. SIGHUP does the same.`,
		Example: `  pwos policy reload`,
	}, schema.PolicyReload.Type, new(schema.PolicyReloadInput))
}

func newPolicyShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "show the rules in force",
		Long: `show lists the rules that the running kernel applies, with the digest of their
files, and the number of calls that each has decided since it was loaded.`,
		Example: `  pwos policy show
  pwos policy show --json | jq .hash`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Show(cmd.Context(), schema.PolicyShow.Type, &schema.PolicyShowInput{}, func(data schema.Value) error {
				if a.WantsJSON() {
					return a.PrintLine(data)
				}
				shown, err := schema.PolicyShow.Decode(data)
				if err != nil {
					return err
				}
				return a.printPolicy(shown)
			})
		},
	}
}

// printPolicy prints an answer of Policy.Show as a table.
func (a *app) printPolicy(shown *schema.PolicyShowOutput) error {
	switch {
	case shown.Invalid != "":
		a.Say("all calls of agents are refused, since the policy is not valid: %s", shown.Invalid)
		return nil
	case shown.Hash == "":
		a.Say("there is no policy: tokens alone decide")
		return nil
	}
	a.Say("policy %s", shown.Hash)
	t := new(view.Table)
	t.Header("rule", "at", "asks", "decided")
	for _, r := range shown.Rules {
		t.Row(view.Escaped(r.ID), view.Escaped(r.At), r.Ask, strconv.FormatInt(r.Decided, 10))
	}
	if shown.More > 0 {
		a.Say("%d more rules are not shown", shown.More)
	}
	return a.PrintTable(t)
}

func newPolicyTest(a *app) *cobra.Command {
	var since arg.Point
	cmd := &cobra.Command{
		Use:   "test [FILE…]",
		Short: "replay the journal's calls against rules",
		Long: `test applies rules to the agents' calls in the journal, and reports the calls for which
the verdict would differ: "would deny", "would ask" or "would now allow", with the rule,
the syscall, the number of calls, and the entry of the first. It needs no kernel,
may run while one writes, and changes nothing. Default: the rules beside the
configuration, and all of the journal.

Rules do not see data that the journal does not keep. Names beside a resource
that an agent has adopted are judged as they were written.

Exit status: 0 done, 2 the rules cannot be loaded.`,
		Example: `  pwos policy test
  pwos policy test new.cedar --since 24h
  pwos policy test --since 12000 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := a.policyOf(args)
			if err != nil {
				return err
			}
			return a.policyTest(cmd.Context(), set, uint64(view.Deref(since.Seq)), view.Deref(since.Time))
		},
	}
	cmd.Flags().Var(cli.PointFlag(&since, 0), "since", "only calls of this last period, such as 24h, after a time, or from this entry on")
	return cmd
}

func (a *app) policyTest(ctx context.Context, set *policy.Set, from uint64, after int64) error {
	forms, err := offline.PolicyForms(client.ConfigFile(), os.Getenv)
	if err != nil {
		return err
	}
	dir, err := cli.JournalDir()
	if err != nil {
		return err
	}
	past, found := policy.NewPast(set, forms), new(policy.Findings)
	reader := journal.NewReader(nil, dir, journal.ReaderOptions{})
	read, err := a.judgePast(ctx, reader, past, found, from, after)
	if err := errors.Join(err, reader.Close()); err != nil {
		return err
	}
	a.Say("%d entries read", read)
	if past.Withheld > 0 {
		a.Say("the journal does not have all data of %d calls: rules that look at the missing data may decide otherwise", past.Withheld)
	}
	l := a.Listing("verdict", "rule", "syscall", "calls", "first")
	for _, f := range found.List() {
		o := view.Object(nil).Text("verdict", string(f.Change)).Text("rule", f.Rule).Text("type", f.Type).Integer("count", f.Count).Integer("first", int64(f.First))
		err := l.Add(o.Close(), string(f.Change), view.Escaped(f.Rule), view.Escaped(f.Type), strconv.FormatInt(f.Count, 10), strconv.FormatUint(f.First, 10))
		if err != nil {
			return err
		}
	}
	return l.End()
}

// judgePast applies the rules to the journal's entries. It shows its progress if stderr is a terminal.
func (a *app) judgePast(ctx context.Context, r *journal.Reader, past *policy.Past, found *policy.Findings, from uint64, after int64) (read int, err error) {
	const step = 50_000
	watched := term.IsTerminal(int(a.Stderr.Fd()))
	for {
		record, err := r.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			if watched && read >= step {
				fmt.Fprint(a.Stderr, "\r\033[K")
			}
			return read, nil
		case err != nil:
			return read, err
		}
		read++
		if watched && read%step == 0 {
			fmt.Fprintf(a.Stderr, "\rpwos: %d entries", read)
		}
		e := policy.Entry{PID: record.PID, Tick: record.Tick, Time: record.Time, Origin: record.Origin, Conn: record.Conn, Request: record.Request, Outcome: record.Outcome}
		change, typ, rule, err := past.Judge(&e, record.Seq >= from && record.Time >= after)
		if err != nil {
			return read, fmt.Errorf("read entry %d: %w", record.Seq, err)
		}
		if change != "" {
			found.Add(record.Seq, change, typ, rule)
		}
	}
}
