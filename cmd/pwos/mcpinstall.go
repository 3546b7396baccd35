package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// mcpInstallFlags are the flags of `pwos mcp install`.
type mcpInstallFlags struct {
	hostFlags
	as, name string
	allow    []string
}

func newMCPInstall(a *app) *cobra.Command {
	var f mcpInstallFlags
	cmd := &cobra.Command{
		Use:   "install " + strings.Join(mcpNames(), "|"),
		Short: "offer a process's syscalls to an agent host as tools",
		Long: `install changes the configuration of an agent host, so that it starts "pwos mcp
serve" as its MCP server pwos. The entry names the directories of this kernel, since
hosts pass almost nothing of their environment to servers. install prints the change as
removed (-) and added (+) lines, and keeps the old file beside the new one. The rest of the
file is unchanged, and installing again changes nothing.

The file is ~/.claude.json, ~/.codex/config.toml, or the user's mcp.json of VS Code; with
--project .mcp.json, .codex/config.toml or .vscode/mcp.json in this directory. Restart
the host afterwards.`,
		Example: `  pwos mcp install claude --allow 'Memory.*' --dry-run
  pwos mcp install codex --as coder`,
		Args: cli.Arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)), ValidArgs: mcpNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.as == "" {
				f.as = args[0]
			}
			if !isServerName(f.name) {
				return cli.Usage(cmd, fmt.Errorf("--name %q: a server name has only letters, digits, - and _", f.name))
			}
			entry, err := a.mcpEntry(&f)
			if err != nil {
				return err
			}
			err = a.changeHost(&f.hostFlags, hostNamed(args[0]).mcp.file, func(text []byte) ([]byte, error) {
				return hostNamed(args[0]).mcp.install(text, f.name, entry)
			})
			if err != nil || f.project || f.name != schema.OwnServer {
				return err
			}
			return a.tellReplaced(args[0])
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.as, "as", "", "name of the process to act as (default: the name of the host)")
	cmd.Flags().StringVar(&f.name, "name", "pwos", "name of the server in the host's configuration")
	cmd.Flags().StringSliceVar(&f.allow, "allow", nil, "what a new process may call, as in mcp serve; may be repeated")
	return cmd
}

func newMCPUninstall(a *app) *cobra.Command {
	var f mcpInstallFlags
	cmd := &cobra.Command{
		Use:   "uninstall " + strings.Join(mcpNames(), "|"),
		Short: "remove the entry again",
		Long: `uninstall removes what "pwos mcp install" wrote from the configuration of an agent
host. The process and its data stay: see "pwos ps", "pwos kill".`,
		Example: `  pwos mcp uninstall claude`,
		Args:    cli.Arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)), ValidArgs: mcpNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.changeHost(&f.hostFlags, hostNamed(args[0]).mcp.file, func(text []byte) ([]byte, error) {
				return hostNamed(args[0]).mcp.uninstall(text, f.name)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.name, "name", "pwos", "name of the server in the host's configuration")
	return cmd
}

// mcpEntry is the entry of a server in a host's configuration.
type mcpEntry struct {
	command string
	args    []string
	env     [][2]string
}

func (a *app) mcpEntry(f *mcpInstallFlags) (*mcpEntry, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	e := &mcpEntry{command: self, args: []string{"mcp", "serve", "--as", f.as}}
	if f.allow != nil {
		e.args = append(e.args, "--allow", quote.List(f.allow))
	}
	if e.env, err = a.kernelEnv(); err != nil {
		return nil, err
	}
	return e, nil
}

// kernelEnv returns the variables that select this command's kernel, for programs with a reduced environment. Otherwise
// these would connect to another kernel, or start one.
func (a *app) kernelEnv() ([][2]string, error) {
	options, err := a.Options()
	if err != nil {
		return nil, err
	}
	if options.RuntimeDir == "" {
		options.RuntimeDir = client.RuntimeDir()
	}
	state, err := cli.StateDir()
	if err != nil {
		return nil, err
	}
	env := [][2]string{{"PWOS_RUNTIME_DIR", options.RuntimeDir}, {"PWOS_STATE_DIR", state}}
	config := os.Getenv("PWOS_CONFIG")
	if base := os.Getenv("XDG_CONFIG_HOME"); config == "" && filepath.IsAbs(base) {
		if file := filepath.Join(base, "pwos", "config.toml"); exists(file) {
			config = file
		}
	}
	if config != "" {
		env = append(env, [2]string{"PWOS_CONFIG", config})
	}
	if key := os.Getenv("PWOS_IDENTITY"); key != "" {
		env = append(env, [2]string{"PWOS_IDENTITY", key})
	}
	for i, one := range env {
		if env[i][1], err = filepath.Abs(one[1]); err != nil {
			return nil, fmt.Errorf("find %s: %w", one[0], err)
		}
	}
	return env, nil
}

// json returns the entry for a JSON file.
func (e *mcpEntry) json() []byte {
	var env view.Object
	for _, one := range e.env {
		env = env.Text(one[0], one[1])
	}
	return view.Object(nil).Text("type", "stdio").Text("command", e.command).Raw("args", view.Texts(e.args)).Raw("env", env.Close()).Close()
}

// toml returns the body of the entry's table for a TOML file. Each JSON string that it writes is also a TOML string, since
// none has an escaped slash.
func (e *mcpEntry) toml() string {
	var env []string
	for _, one := range e.env {
		env = append(env, one[0]+" = "+string(schema.AppendString(nil, one[1])))
	}
	return fmt.Sprintf("command = %s\nargs = %s\nenv = { %s }\n", schema.AppendString(nil, e.command), view.Texts(e.args), strings.Join(env, ", "))
}

// install returns a file's text with the entry added.
func (h *mcpHost) install(text []byte, name string, e *mcpEntry) ([]byte, error) {
	if err := h.ours(text, name); err != nil {
		return nil, err
	}
	if h.toml {
		return hostfile.SetTable(text, h.table, name, e.toml())
	}
	return hostfile.SetMember(text, e.json(), h.table, name)
}

func (h *mcpHost) uninstall(text []byte, name string) ([]byte, error) {
	if err := h.ours(text, name); err != nil {
		return nil, err
	}
	if h.toml {
		return hostfile.RemoveTable(text, h.table, name)
	}
	return hostfile.RemoveMember(text, h.table, name)
}

// ours returns an error if the entry with that name was not written by pwos.
func (h *mcpHost) ours(text []byte, name string) error {
	var args []string
	if h.toml {
		table, err := hostfile.Table(text, h.table, name)
		if err != nil || table == nil {
			return err
		}
		list, _ := table["args"].([]any)
		for _, arg := range list {
			text, _ := arg.(string)
			args = append(args, text)
		}
	} else {
		raw, err := hostfile.Member(text, h.table, name)
		if err != nil || raw == nil {
			return err
		}
		members, _ := view.Members(raw)
		args, _ = view.As[[]string](members["args"])
	}
	if len(args) < 2 || !slices.Equal(args[:2], []string{"mcp", "serve"}) {
		return fmt.Errorf("its server %q was not installed by pwos: choose another --name", name)
	}
	return nil
}

// isServerName reports whether name is valid for all hosts.
func isServerName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
