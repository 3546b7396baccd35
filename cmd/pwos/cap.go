package main

import (
	"github.com/spf13/cobra"
)

func newCap(a *app) *cobra.Command {
	return group("cap", "grant, revoke, show and check what processes may do",
		`cap is about capabilities: which syscalls a process may make, and how much of each
resource it may hold. A process that was granted nothing may do next to nothing.`,
		`  pwos cap grant 7 'Memory.*' SYS_SEND_MSG --quota gpu=2
  pwos cap check 7 Memory.Set
  pwos cap show
  pwos cap revoke 7`,
		newCapGrant(a), newCapRevoke(a), newCapShow(a), newCapCheck(a))
}
