package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "show which pwos this is",
		Long:  "version shows which pwos this is, from what source, and what built it. It needs no kernel.",
		Example: `  pwos version
  pwos version --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.version() },
	}
}

// version is that of the module that this program was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

func (a *app) version() error {
	version, revision := version(), ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if a.wantsJSON() {
		o := object(nil).text("version", version)
		if revision != "" {
			o = o.text("revision", revision)
		}
		return a.printLine(o.text("go", runtime.Version()).text("platform", platform).close())
	}
	t := new(table)
	t.row("pwos", version)
	if revision != "" {
		t.row("revision", revision)
	}
	t.row("built with", runtime.Version()+" for "+platform)
	return t.write(a.stdout)
}
