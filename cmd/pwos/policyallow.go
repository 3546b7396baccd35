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
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema/fault"
)

func newPolicyAllow(a *app) *cobra.Command {
	var from uint64
	var write bool
	cmd := &cobra.Command{
		Use:   "allow --from SEQ",
		Short: "make the narrowest exception for a refused call",
		Long: `allow finds the call of an entry of the journal, and the rules beside the configuration
that refuse it, and prints the narrowest change that lets it through: an exception for its
agent, its syscall, and the arguments that the rule looks at. With --write the files are
changed; "pwos policy reload" has the kernel take them.`,
		Example: `  pwos policy allow --from 1204
  pwos policy allow --from 1204 --write && pwos policy reload`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == 0 {
				return usage(cmd, errors.New("--from is required: the number of the call's entry, as pwos audit log shows it"))
			}
			return a.policyAllow(cmd.Context(), from, write)
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "the entry of the refused call")
	cmd.Flags().BoolVar(&write, "write", false, "change the files")
	return cmd
}

func (a *app) policyAllow(ctx context.Context, from uint64, write bool) error {
	config := client.ConfigFile()
	files, err := policy.Read(config)
	if err != nil {
		return err
	}
	forms, err := daemon.PolicyForms(config, os.Getenv)
	if err != nil {
		return err
	}
	dir, err := journalDir()
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
		a.say("no rule refuses this call")
		return nil
	}
	for _, r := range rules {
		if err := a.printLine([]byte(fmt.Sprintf("%s: rule %q", r.At(), r.ID))); err != nil {
			return err
		}
	}
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
			if err := a.printLine([]byte("+ " + line)); err != nil {
				return err
			}
		}
		if write {
			if err := replaceFile(filepath.Join(filepath.Dir(config), filepath.FromSlash(f.Name)), f.Text); err != nil {
				return err
			}
			a.say("%s is changed: \"pwos policy reload\" has the kernel take it", f.Name)
		}
	}
	return nil
}

// entryAt reads the journal up to an entry, and has past note all before.
func entryAt(ctx context.Context, r *journal.Reader, past *policy.Past, seq uint64) (*policy.Entry, error) {
	for {
		record, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil, fault.UsageInvalid.New("the journal has no entry %d", seq)
		}
		if err != nil {
			return nil, err
		}
		e := &policy.Entry{PID: record.PID, Tick: record.Tick, Origin: record.Origin, Conn: record.Conn, Request: record.Request, Outcome: record.Outcome}
		if record.Seq == seq {
			e.Request, e.Outcome = slices.Clone(e.Request), slices.Clone(e.Outcome) // the record is the reader's
			return e, nil
		}
		if _, _, _, err := past.Judge(e, false); err != nil {
			return nil, fmt.Errorf("read entry %d: %w", record.Seq, err)
		}
	}
}

// replaceFile puts another text into a file, all of it or nothing.
func replaceFile(path string, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("change policy: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return fmt.Errorf("change policy: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".policy-*")
	if err != nil {
		return fmt.Errorf("change policy: %w", err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("change policy: %w", err), os.Remove(f.Name()))
	}
	return nil
}
