package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

// httpFlags are the flags that grant requests to servers.
type httpFlags struct {
	hosts []string
	plain bool
	open  bool
}

func (f *httpFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.hosts, "host", nil, "server that it may reach: a name, *.name for all below it, an address, or * for any name; with or without a port; may be given again")
	cmd.Flags().BoolVar(&f.plain, "http-plain", false, "it may fetch over http: too")
	cmd.Flags().BoolVar(&f.open, "http-open", false, "sealed header values are opened for it")
}

// grant is what the flags grant, nil where none was given.
func (f *httpFlags) grant() *schema.HTTPGrant {
	if f.hosts == nil && !f.plain && !f.open {
		return nil
	}
	return &schema.HTTPGrant{Hosts: append([]string{}, f.hosts...), Plain: f.plain, Open: f.open}
}
