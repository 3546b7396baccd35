package keyed

import (
	"log/slog"

	"github.com/promptware-os/pwos/schema"
)

// Refusals records refused logins.
type Refusals struct{ refusals }

// NewRefusals passes each record to note.
func NewRefusals(log *slog.Logger, note func(schema.Request)) *Refusals {
	return &Refusals{refusals{log: log, note: note}}
}

// Refused and Close reach its methods.
func (r *Refusals) Refused(one *schema.LoginFailedInput) { r.refused(one) }
func (r *Refusals) Close()                               { r.close() }
