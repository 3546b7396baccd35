package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newAuthKeys(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "keys [FILE]",
		Short: "show which keys authorized_keys admits",
		Long: `keys reads a file of authorized keys as the kernel does, by default the one beside the
configuration, and shows whom each line admits, which lines are refused, and why.
It needs no kernel.

A line without options is for the operator. A line with allow, quota, origin, agent
or expiry-time before the key is for an agent, which may do what the line says:

  agent="scout",allow="Memory.*,Syscall.SendMsg" ssh-ed25519 AAAA... me@laptop

This command does not check whether the allowed syscalls exist: the kernel logs that
when it reads the file. Exit status: 4 no such file, which means open mode.`,
		Example: `  pwos auth keys
  pwos auth keys /etc/pwos/authorized_keys
  pwos auth keys --json`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path := client.AuthorizedKeys()
			if len(args) == 1 {
				path = args[0]
			}
			return a.authKeys(path)
		},
	}
}

func (a *app) authKeys(path string) error {
	if path == "" {
		return errors.New("find authorized keys: set HOME or PWOS_CONFIG, or name the file")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find authorized keys: %w", err)
	}
	keys, err := access.NewSource(path, time.Now).Load()
	if errors.Is(err, fs.ErrNotExist) {
		return fault.PlaceNotThere.New("%s does not exist: a kernel that starts without it is in open mode", path)
	}
	if err != nil {
		return err
	}
	l := a.Listing("line", "key", "who", "may call", "holds at most", "until", "comment")
	for _, k := range keys.Keys() {
		who, may, quotas := "the operator", "everything", ""
		if k.Role != "" {
			who, may = "the operator, "+k.Role, map[string]string{"viewer": "queries", "approver": "queries, Approval.Decide"}[k.Role]
		}
		if k.Agent != nil {
			who, may, quotas = strings.TrimSpace("agent "+k.Agent.Name), strings.Join(k.Agent.Allow, " "), granted(k.Agent)
		}
		if err := l.Add(keyObject(k), strconv.Itoa(k.Line), k.Key.Fingerprint(), view.Escaped(who), view.Escaped(may), view.Escaped(quotas), untilOf(k), view.Escaped(k.Comment)); err != nil {
			return err
		}
	}
	for _, line := range keys.Refused() {
		o := view.Object(nil).Integer("line", int64(line.Line))
		if line.Fingerprint != "" {
			o = o.Text("key", line.Fingerprint)
		}
		if err := l.Add(o.Text("refused", line.Reason).Close(), strconv.Itoa(line.Line), line.Fingerprint, a.Style(view.Bad, "refused:")+" "+view.Escaped(line.Reason)); err != nil {
			return err
		}
	}
	return l.End()
}

// keyObject formats one line of authorized_keys as JSON.
func keyObject(k *access.AuthorizedKey) []byte {
	o := view.Object(nil).Integer("line", int64(k.Line)).Text("key", k.Key.Fingerprint()).Text("type", k.Key.Type())
	if k.Comment != "" {
		o = o.Text("comment", k.Comment)
	}
	if k.Agent == nil {
		o = o.Text("as", "operator")
		if k.Role != "" {
			o = o.Text("role", k.Role)
		}
	} else {
		o = o.Text("as", "agent")
		if k.Agent.Name != "" {
			o = o.Text("agent", k.Agent.Name)
		}
		if k.Agent.Origin != "" {
			o = o.Text("origin", k.Agent.Origin)
		}
		var quotas view.Object
		for _, resource := range slices.Sorted(maps.Keys(k.Agent.Quotas)) {
			quotas = quotas.Number(resource, k.Agent.Quotas[resource], -1)
		}
		o = o.Raw("allow", view.Texts(k.Agent.Allow)).Raw("quotas", quotas.Close())
	}
	if k.NoTouch {
		o = o.Boolean("no_touch_required", true)
	}
	if !k.Expires.IsZero() {
		o = o.Text("expires", untilOf(k))
	}
	return o.Close()
}

func granted(grant *access.AgentGrant) string {
	var all []string
	for _, resource := range slices.Sorted(maps.Keys(grant.Quotas)) {
		all = append(all, resource+" "+view.Units(grant.Quotas[resource]))
	}
	return strings.Join(all, ", ")
}

func untilOf(k *access.AuthorizedKey) string {
	if k.Expires.IsZero() {
		return "ever"
	}
	return k.Expires.UTC().Format(time.RFC3339)
}
