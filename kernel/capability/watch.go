package capability

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// watch answers Capability.Watch, with changes that are not published yet: who is asked again is asked only after this command.
func (r *Registry) watch(call *kernel.Call, in *schema.ListWatchInput) (schema.SuccessOutput, error) {
	out := schema.SuccessOutput{Success: true}
	var registered []string
	if r.registry != nil {
		registered = r.registry.RegisteredIn(call.Origin)
	}
	list := kernel.Callable(registered, call.PID, r.linked(r.tokens, call.PID), call.Tick)
	data, err := schema.Marshal(&list)
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256(data)
	seen := hex.EncodeToString(sum[:])
	if seen == in.Seen {
		call.Park(kernel.Forever)
		return out, nil
	}
	call.Emit(kernel.Event{Type: schema.SyscallListed, Data: data})
	call.Follow(schema.CapabilityWatch.With(&schema.ListWatchInput{Seen: seen}))
	return out, nil
}
