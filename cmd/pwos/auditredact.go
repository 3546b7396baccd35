package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/view"
)

func newAuditRedact(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "redact SEQ MEMBER",
		Short: "remove a secret from an entry of the record",
		Long: `redact replaces a member of an entry by "[redacted]" in the journal. The chain keeps the
hash that the line had, and a new entry, Audit.Redacted, names the member and both hashes,
never the value; "pwos audit verify" accepts exactly that. Snapshots and the index, which
may have the value, are deleted, and rebuilt at the next start.

The kernel must not run: end it with "pwos shutdown" first. State that was made of the
value is rebuilt from the record as it is then: a key that was set to it is "[redacted]".

MEMBER is a JSON pointer into the line, such as /request/data/value or
/outcome/data/items/0. Without a slash in front it is below /request/data. Only content can
be redacted: members that say who did what, that other entries refer to, or that the state
cannot be rebuilt without, stay. The pointer is recorded: if a name in it is the secret,
redact the member around it.

The answer lists other entries that have the same value: redact those too. Backups, archives,
exports, a copy on a cluster's bus and the directories of agents keep the value: change
the secret in any case.

Exit status: 1 the member must stay, 4 no such entry or member, 8 a kernel runs.`,
		Example: `  pwos shutdown && pwos audit redact 120 value
  pwos audit redact 120 /request/data/payload/password
  pwos audit redact 121 /outcome/data/body`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 63)
			if err != nil || seq == 0 {
				return usage(cmd, fmt.Errorf("%q is not the number of an entry", args[0]))
			}
			member := args[1]
			if member == "" {
				return usage(cmd, errors.New("MEMBER is empty: name it by a JSON pointer, such as /request/data/value"))
			}
			if !strings.HasPrefix(member, "/") {
				member = "/request/data/" + member
			}
			return a.auditRedact(cmd.Context(), seq, member)
		},
	}
}

func (a *app) auditRedact(ctx context.Context, seq uint64, member string) error {
	ctx, cancel := a.bound(ctx, 0)
	defer cancel()
	made, err := daemon.Redact(ctx, nil, os.Getenv, a.stderr, seq, member)
	if err != nil {
		return err
	}
	also := make([]string, len(made.Also))
	for i, n := range made.Also {
		also[i] = strconv.FormatUint(n, 10)
	}
	o := view.Object(nil).Integer("seq", int64(made.Seq)).Text("member", made.Member)
	if made.By != 0 {
		o = o.Integer("by", int64(made.By))
	}
	o = o.Boolean("already", made.By == 0).Raw("also", []byte("["+strings.Join(also, ",")+"]")).
		Boolean("more", made.More).Boolean("cluster", made.Cluster)
	t := new(view.Table)
	t.Row("redacted", view.Escaped(made.Member)+" of entry "+strconv.FormatUint(made.Seq, 10))
	if made.By == 0 {
		t.Row("vouched for", "it was redacted before: nothing was changed")
	} else {
		t.Row("vouched for", "by entry "+strconv.FormatUint(made.By, 10))
	}
	if len(also) > 0 {
		list := strings.Join(also, ", ")
		if made.More {
			list += " and more"
		}
		t.Row("also in", "entries "+list+": redact these too")
	}
	if made.Cluster {
		t.Row("not changed", "the copy of the journal on the cluster's bus, which keeps the value")
	}
	return a.printEither(o.Close(), t)
}
