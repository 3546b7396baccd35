package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/view"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "show which pwos this is",
		Long:  "version shows which pwos this is, from what source, and what built it. It needs no kernel.",
		Example: `  pwos version
  pwos version --json`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.version() },
	}
}

func (a *app) version() error {
	build, revision := version.Build(), ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	o, t := view.Object(nil).Text("version", build), new(view.Table)
	t.Row("pwos", build)
	if revision != "" {
		o = o.Text("revision", revision)
		t.Row("revision", revision)
	}
	t.Row("built with", runtime.Version()+" for "+platform)
	return a.PrintEither(o.Text("go", runtime.Version()).Text("platform", platform).Close(), t)
}
