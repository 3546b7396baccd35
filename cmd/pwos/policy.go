package main

import (
	"github.com/spf13/cobra"
)

func newPolicy(a *app) *cobra.Command {
	return group("policy", "rules about the arguments of agents' calls",
		`policy is about the rules that narrow what agents may do: which keys, hosts, paths and
amounts. They are written in Cedar, in policy.cedar and policy.d/*.cedar beside the
configuration of the kernel. Without files there is no policy.`,
		`  pwos policy check              # is what the files say valid
  pwos policy test --since 24h   # what would it have done
  pwos policy allow --from 1204  # an exception for a refused call
  pwos policy reload             # have the kernel take it
  pwos policy show               # what it goes by, and how often`,
		newPolicyCheck(a), newPolicyTest(a), newPolicyAllow(a), newPolicyReload(a), newPolicyShow(a))
}
