package main

import (
	"github.com/spf13/cobra"
)

func newAudit(a *app) *cobra.Command {
	return group("audit", "read, follow and verify the record of all calls",
		`audit is about the journal: an entry for each call that the kernel understood, denied
ones too, each chained to the one before by its hash.`,
		`  pwos audit log --last 20
  pwos audit log --pid 7
  pwos audit tail
  pwos audit verify
  pwos audit metrics`,
		newAuditLog(a), newAuditTail(a), newAuditVerify(a), newAuditMetrics(a))
}
