package capability

import (
	"math"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// revoke answers Capability.Revoke. A process without a token is an answer, not an error, even if the process has
// ended; a PID that never existed is an error.
func (r *Registry) revoke(call *kernel.Call, in *schema.RevokeInput) (schema.RevokeOutput, error) {
	_, held := r.tokens.Get(in.PID)
	if kernel.Visible(r.processes, call, in.PID) == nil && (!held || call.PID != kernel.Operator) {
		return schema.RevokeOutput{}, kernel.NoProcess(in.PID)
	}
	if err := r.authority(call, "revoke the token of", in.PID); err != nil {
		return schema.RevokeOutput{}, err
	}
	return schema.RevokeOutput{PID: in.PID, Revoked: held}, nil
}

// revokeExpired answers Capability.RevokeExpired with the visible PIDs whose token has expired, ascending, as many as
// fit an answer: it revokes only those.
func (r *Registry) revokeExpired(call *kernel.Call, _ *schema.RevokeExpiredInput) (schema.RevokeExpiredOutput, error) {
	var out schema.RevokeExpiredOutput
	room, from := kernel.MaxData-len(`{"revoked":[]}`), int64(math.MinInt64)
	return kernel.InSlices(call, func() (schema.RevokeExpiredOutput, bool) {
		looked, done := 0, true
		r.tokens.Ascend(from, func(pid int64, h *held) bool {
			if looked++; looked > tokensAtOnce {
				from, done = pid, false
				return false
			}
			if !h.token.Expired(call.Tick) || r.processes.Process(pid) != nil && kernel.Visible(r.processes, call, pid) == nil {
				return true
			}
			if room -= len(strconv.FormatInt(pid, 10)) + len(","); room < 0 {
				return false
			}
			out.Revoked = append(out.Revoked, pid)
			return true
		})
		return out, done
	}), nil
}

// tokensAtOnce is how many tokens Capability.RevokeExpired checks in one turn.
const tokensAtOnce = 4096

// applyRevokeExpired removes the tokens that the answer names: how many fit depended on the longest line of its time.
func (r *Registry) applyRevokeExpired(e *kernel.Entry, _ *schema.RevokeExpiredInput) {
	r.drop(kernel.Reply[schema.RevokeExpiredOutput](e, schema.CapabilityRevokeExpired.Output()).Revoked...)
}

// strip answers the kernel's Capability.Strip.
func strip(*kernel.Call, *schema.StripInput) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{Success: true}, nil
}

// Granted returns the token of a process as it was granted, nil if it has none. It must not be changed. Only the owner
// of the domain may call it.
func (r *Registry) Granted(pid int64) *schema.Token {
	if h, ok := r.tokens.Get(pid); ok {
		return &h.token.Granted
	}
	return nil
}

// Changes is the number of changes that were sent to the journal so far. It is safe for concurrent use.
func (r *Registry) Changes() int64 { return r.recent.Shown() }

// changed records a change of a process's token.
func (r *Registry) changed(pid int64) { r.recent.Changed("", strconv.FormatInt(pid, 10)) }

// decideRestore refuses to undo a change of a token that may have been changed since that was decided, and to give a token to
// a process that has ended.
func (r *Registry) decideRestore(call *kernel.Call, in *schema.RestoreTokenInput) (ok schema.SuccessOutput, err error) {
	if in.Since != nil && r.recent.Since(*in.Since, "", strconv.FormatInt(in.PID, 10)) {
		return ok, fault.UndoOvertaken.New("the token of pid %d was changed meanwhile", in.PID).With("pid", strconv.FormatInt(in.PID, 10))
	}
	if in.Token != nil {
		if err := r.living(call, in.PID); err != nil {
			return ok, err
		}
	}
	return schema.SuccessOutput{Success: true}, nil
}

func (r *Registry) applyRestore(_ *kernel.Entry, in *schema.RestoreTokenInput) {
	if in.Token == nil {
		r.drop(in.PID)
		return
	}
	r.put(*in.Token)
}
