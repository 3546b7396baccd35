package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/schema"
)

// confineFlags are the flags that say how a program is confined.
type confineFlags struct {
	level, net        string
	read, write, hide []string
	allowGaps         bool
}

func (f *confineFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.level, "sandbox", "", "default, strict or off: what the machine can do, only what is named, nothing (default default)")
	flags.StringArrayVar(&f.read, "read", nil, "a path that it may read beside its directory; may be given again")
	flags.StringArrayVar(&f.write, "write", nil, "a path that it may write beside its directory; may be given again")
	flags.StringArrayVar(&f.hide, "hide", nil, "a path that is hidden from it; may be given again")
	flags.StringVar(&f.net, "net", "", "none, kernel or open: no network, through the kernel, as the kernel's user (default kernel; none with strict, open with off)")
	flags.BoolVar(&f.allowGaps, "allow-gaps", false, "run it though this machine cannot hide the kernel's state and keys")
}

// sandbox is what was asked for; nil is the default.
func (f *confineFlags) sandbox(cmd *cobra.Command) (*schema.Sandbox, error) {
	s := &schema.Sandbox{Level: textGiven(cmd, "sandbox", f.level), Net: textGiven(cmd, "net", f.net)}
	for _, list := range []struct {
		flag string
		from []string
		to   *[]string
	}{{"read", f.read, &s.Read}, {"write", f.write, &s.Write}, {"hide", f.hide, &s.Hide}} {
		for _, path := range list.from {
			if path == "" {
				return nil, fmt.Errorf("--%s names no path", list.flag)
			}
			path, err := filepath.Abs(path)
			if err != nil {
				return nil, fmt.Errorf("find --%s: %w", list.flag, err)
			}
			if real, err := filepath.EvalSymlinks(path); err == nil && list.flag != "hide" { // the kernel takes no link to one
				path = real
			}
			*list.to = append(*list.to, path)
		}
	}
	if f.allowGaps {
		s.AllowGaps = &f.allowGaps
	}
	if s.Level == nil && s.Net == nil && s.Read == nil && s.Write == nil && s.Hide == nil && s.AllowGaps == nil {
		return nil, nil
	}
	return s, nil
}
