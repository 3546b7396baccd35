package daemon

import (
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/uri"
)

// Origin returns an origin in its normal form (ABI 6.2). The path of a root is one too.
func Origin(text string) (string, error) {
	if filepath.IsAbs(text) {
		return text, nil
	}
	return uri.Origin(text, "")
}

// warnOfOrigins says which memory the operator does not see, since it was stored under another origin: a root or an origin that
// the configuration gained, or lost, changes the operator's. What belongs to the agents of keys is meant to be apart.
func (d *Daemon) warnOfOrigins() {
	apart := map[string]bool{d.config.Origin: true}
	d.state.Processes.Living(func(p *schema.Descriptor) {
		if p.ParentPID == kernel.Operator && strings.HasPrefix(p.Intent, process.KeyIntent) {
			apart[p.Origin] = true
		}
	})
	for origin, keys := range d.state.Memory.Origins() {
		if !apart[origin] {
			d.log.Warn("memory is stored under another origin than the operator's, who does not see it: reach it with --origin, as in: pwos mem ls --origin "+origin,
				"origin", d.config.Origin, "other", origin, "keys", keys)
		}
	}
}
