package capability

import (
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

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
