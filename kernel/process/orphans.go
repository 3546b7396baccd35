package process

import (
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Orphans returns the commands of a recovery: tokens, holdings and mailboxes of processes that are not alive are
// taken away. A crash leaves such behind when it cuts short a spawn, whose child never came to be, or a termination. The
// PIDs that have each may come in any order; what belongs to the operator stays.
func Orphans(alive func(pid int64) bool, tokens, holders, mailboxes []int64) []schema.Request {
	dead := func(pids []int64) []int64 {
		var list []int64
		for _, pid := range pids {
			if pid != kernel.Operator && !alive(pid) {
				list = append(list, pid)
			}
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	return sweep(dead(tokens), dead(holders), dead(mailboxes))
}
