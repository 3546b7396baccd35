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
	"github.com/promptware-os/pwos/schema/fault"
)

func newAuthKeys(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "keys [FILE]",
		Short: "show whom authorized_keys lets in",
		Long: `keys reads a file of authorized keys as the kernel does, by default the one beside the
configuration, and shows whom each line lets in, and which lines are refused and why.
It needs no kernel.

A line without options is the operator's. A line that says allow, quota, origin, agent
or expiry-time before the key is an agent's, which may do what the line says:

  agent="scout",allow="Memory.*,Syscall.SendMsg" ssh-ed25519 AAAA... me@laptop

Whether what it allows exists is for the kernel to say, which logs it when it reads the
file. Exit status: 4 where there is no such file, which means open mode.`,
		Example: `  pwos auth keys
  pwos auth keys /etc/pwos/authorized_keys
  pwos auth keys --json`,
		Args: arguments(cobra.MaximumNArgs(1)),
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
		return fault.PlaceNotThere.New("there is no %s: a kernel that starts without one is in open mode", path)
	}
	if err != nil {
		return err
	}
	t := new(table)
	t.header("line", "key", "who", "may call", "holds at most", "until", "comment")
	for _, k := range keys.Keys() {
		if a.wantsJSON() {
			if err := a.printLine(keyObject(k)); err != nil {
				return err
			}
			continue
		}
		who, may, quotas := "the operator", "everything", ""
		if k.Role != "" {
			who, may = "the operator, "+k.Role, map[string]string{"viewer": "queries", "approver": "queries, Approval.Decide"}[k.Role]
		}
		if k.Agent != nil {
			who, may, quotas = strings.TrimSpace("agent "+k.Agent.Name), strings.Join(k.Agent.Allow, " "), granted(k.Agent)
		}
		t.row(strconv.Itoa(k.Line), k.Key.Fingerprint(), escaped(who), escaped(may), escaped(quotas), untilOf(k), escaped(k.Comment))
	}
	for _, line := range keys.Refused() {
		if !a.wantsJSON() {
			t.row(strconv.Itoa(line.Line), line.Fingerprint, a.style(bad, "refused:")+" "+escaped(line.Reason))
			continue
		}
		o := object(nil).integer("line", int64(line.Line))
		if line.Fingerprint != "" {
			o = o.text("key", line.Fingerprint)
		}
		if err := a.printLine(o.text("refused", line.Reason).close()); err != nil {
			return err
		}
	}
	return a.printTable(t)
}

// keyObject is what a line says, as JSON.
func keyObject(k *access.AuthorizedKey) []byte {
	o := object(nil).integer("line", int64(k.Line)).text("key", k.Key.Fingerprint()).text("type", k.Key.Type())
	if k.Comment != "" {
		o = o.text("comment", k.Comment)
	}
	if k.Agent == nil {
		o = o.text("as", "operator")
		if k.Role != "" {
			o = o.text("role", k.Role)
		}
	} else {
		o = o.text("as", "agent")
		if k.Agent.Name != "" {
			o = o.text("agent", k.Agent.Name)
		}
		if k.Agent.Origin != "" {
			o = o.text("origin", k.Agent.Origin)
		}
		var quotas object
		for _, resource := range slices.Sorted(maps.Keys(k.Agent.Quotas)) {
			quotas = quotas.number(resource, k.Agent.Quotas[resource], -1)
		}
		o = o.raw("allow", texts(k.Agent.Allow)).raw("quotas", quotas.close())
	}
	if k.NoTouch {
		o = o.boolean("no_touch_required", true)
	}
	if !k.Expires.IsZero() {
		o = o.text("expires", untilOf(k))
	}
	return o.close()
}

func granted(grant *access.AgentGrant) string {
	var all []string
	for _, resource := range slices.Sorted(maps.Keys(grant.Quotas)) {
		all = append(all, resource+" "+units(grant.Quotas[resource]))
	}
	return strings.Join(all, ", ")
}

func untilOf(k *access.AuthorizedKey) string {
	if k.Expires.IsZero() {
		return "ever"
	}
	return k.Expires.UTC().Format(time.RFC3339)
}
