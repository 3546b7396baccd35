package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema/fault"
)

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
