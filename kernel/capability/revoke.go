package capability

import (
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// revoke answers Capability.Revoke. That there is no token to take away is an answer, not an error, even where the process
// has ended; that there never was such a process is one.
func (r *Registry) revoke(call *kernel.Call, pid int64) (kernel.Result, error) {
	_, held := r.tokens.Get(pid)
	if kernel.Visible(r.processes, call, pid) == nil && (!held || call.PID != kernel.Operator) {
		return kernel.Result{}, unknown(pid)
	}
	if err := r.authority(call, "revoke the token of", pid); err != nil {
		return kernel.Result{}, err
	}
	return answer(schema.RevokeOutput{PID: pid, Revoked: held})
}

// expired returns the PIDs that the call sees whose token holds no longer, ascending, and no more of them than an answer has
// room for: what Capability.RevokeExpired does not name it does not revoke.
func (r *Registry) expired(call *kernel.Call) []int64 {
	var pids []int64
	r.tokens.Scan(func(pid int64, h *held) bool {
		unseen := r.processes.Process(pid) != nil && kernel.Visible(r.processes, call, pid) == nil
		if h.token.Expired(call.Tick) && !unseen {
			pids = append(pids, pid)
		}
		return true
	})
	room := kernel.MaxData - len(`{"revoked":[]}`)
	for i, pid := range pids {
		if room -= len(strconv.FormatInt(pid, 10)) + len(","); room < 0 {
			return pids[:i]
		}
	}
	return pids
}
