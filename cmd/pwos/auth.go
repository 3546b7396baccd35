package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

func newAuth(a *app) *cobra.Command {
	return group("auth", "who may talk to the kernel, and which kernel it is",
		`auth is about who is at either end of a connection. Where a kernel has a file
authorized_keys beside its configuration, it lets in who holds an SSH key of that
file, and nobody else; and it proves by a host key of its own that it is the kernel
that it was.`,
		`  pwos auth status               # does the kernel let me in, and as whom
  pwos auth keys                 # whom does authorized_keys let in
  pwos auth trust --list         # which kernels are known here`,
		newAuthStatus(a), newAuthKeys(a), newAuthTrust(a))
}

// texts is a JSON array of strings.
func texts(all []string) []byte {
	list := []byte{'['}
	for i, text := range all {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, schema.AppendString(nil, text)...)
	}
	return append(list, ']')
}
