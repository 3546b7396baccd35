package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

// verifyFlags are the flags of `pwos audit verify`.
type verifyFlags struct {
	keys, checkpoints string
	kernel            cli.KernelName
}

func newAuditVerify(a *app) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [DIR...]",
		Short: "check a journal, and archives of it, without a kernel",
		Long: `verify reads a whole journal with its checkpoints and reports whether it is as it was
written. It needs no kernel, changes nothing, and may run while one writes. DIR is the
journal's directory, or a state directory (default: the environment's), or an archive's.
Several are parts of one journal, such as the directories that it was archived to and its
own: verify checks that they are one chain.

The limits of the check are printed to stderr. --checkpoints and --keys extend
it: they name files that were kept where nobody could change them with the journal,
a copy of the file "checkpoints", and the kernel's public keys. The key of the last epoch
is enough: the record says which keys the epochs before had.

--kernel NAME checks the copy of another kernel's journal, on the bus of the cluster, without
that kernel: the chain, and its signatures with the key in the members file.

Exit status: 0 nothing contradicts the record, 4 no journal, 10 something does
(the report names each place).`,
		Example: `  pwos audit verify
  pwos audit verify /backup/journal --checkpoints /safe/checkpoints --keys /safe/host_key.pub
  pwos audit verify /archive/pwos ~/.local/state/pwos
  pwos audit verify --kernel beta
  pwos audit verify --json | jq .findings`,
		Args: cli.Arguments(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.kernel != "" {
				if len(args) > 0 || f.keys != "" || f.checkpoints != "" {
					return cli.Usage(cmd, errors.New("--kernel takes neither a directory nor another flag"))
				}
				return a.verifyKernel(cmd.Context(), string(f.kernel))
			}
			options, err := f.options()
			if err != nil {
				return cli.Usage(cmd, err)
			}
			dirs := make([]string, len(args))
			for i, dir := range args {
				if dirs[i], err = filepath.Abs(journalIn(dir)); err != nil {
					return fmt.Errorf("find journal: %w", err)
				}
			}
			if len(dirs) == 0 {
				dir, err := cli.JournalDir()
				if err != nil {
					return err
				}
				dirs = append(dirs, dir)
			}
			return a.auditVerify(cmd.Context(), dirs, options)
		},
	}
	cmd.Flags().Var(&f.kernel, "kernel", "check this kernel's journal on the bus")
	cmd.Flags().StringVar(&f.checkpoints, "checkpoints", "", "file of checkpoints that were kept elsewhere")
	cmd.Flags().StringVar(&f.keys, "keys", "", "file of the public keys that may sign checkpoints, one a line")
	return cmd
}

// journalIn returns dir, or its subdirectory journal if dir is a state directory.
func journalIn(dir string) string {
	if segments, err := filepath.Glob(filepath.Join(dir, "*.ndjson")); err == nil && len(segments) == 0 {
		if info, err := os.Stat(filepath.Join(dir, "journal")); err == nil && info.IsDir() {
			return filepath.Join(dir, "journal")
		}
	}
	return dir
}

// options reads the files that the flags name. Its errors are usage errors.
func (f *verifyFlags) options() (o journal.VerifyOptions, err error) {
	o.Names = journal.NamedHostKey
	err = eachLine(f.keys, func(line string) error {
		o.Keys = append(o.Keys, line)
		return nil
	})
	if err != nil {
		return o, err
	}
	return o, eachLine(f.checkpoints, func(line string) error {
		cp, err := journal.ParseCheckpoint([]byte(line))
		o.Known = append(o.Known, cp)
		return err
	})
}

// eachLine calls do with each non-empty line of a file; if file is "", it does nothing. It refuses an empty file,
// which would make the check weaker than the user requested.
func eachLine(file string, do func(line string) error) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return fmt.Errorf("%s is empty", file)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := do(line); err != nil {
			return fmt.Errorf("%s line %d: %w", file, n, err)
		}
	}
	return nil
}

// auditVerify verifies one journal. dirs are its directory and its archives.
func (a *app) auditVerify(ctx context.Context, dirs []string, options journal.VerifyOptions) error {
	ctx, cancel := a.Bound(ctx, 0)
	defer cancel()
	dir, err := latestPart(dirs)
	if err != nil {
		return err
	}
	options.Archives = slices.DeleteFunc(slices.Clone(dirs), func(part string) bool { return part == dir })
	report, err := journal.Verify(ctx, nil, dir, options)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist), err == nil && report.OK() && report.Segments == 0:
		return fault.PlaceNotThere.New("there is no journal in %s: give its directory, or set PWOS_STATE_DIR", dir)
	case err != nil:
		return err
	}
	if err := a.printReport(dir, options.Archives, report); err != nil {
		return err
	}
	switch {
	case !fresh(report):
		for _, limit := range report.Limits() {
			a.Say("%s", limit)
		}
	case a.WantsJSON(): // for people, printReport prints it
		a.Say("%s", noCheckpoint)
	}
	if report.OK() {
		return nil
	}
	more := ""
	if n := len(report.Findings) + report.Omitted - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Errorf("%w%s", report.Findings[0], more)
}

// latestPart returns the directory with the journal's last entries. If there are several dirs, each must contain segments.
func latestPart(dirs []string) (latest string, err error) {
	if len(dirs) == 1 {
		return dirs[0], nil
	}
	last := ""
	for _, dir := range dirs {
		segments, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
		if err != nil {
			return "", fmt.Errorf("find journal: %w", err)
		}
		if len(segments) == 0 {
			return "", fault.PlaceNotThere.New("there is no journal in %s: give its directory, or set PWOS_STATE_DIR", dir)
		}
		if name := filepath.Base(slices.Max(segments)); name > last {
			latest, last = dir, name
		}
	}
	return latest, nil
}
