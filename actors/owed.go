package actors

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// owe keeps a command until the journal can be written.
type owe struct{ batch *batch }

// LogValue is that of the batch.
func (o owe) LogValue() slog.Value { return o.batch.LogValue() }

// settle has what is owed made again, before any command of a client is let in: it may need what that gives back.
func (a *audit) settle(ctx actor.Context) {
	for _, b := range a.owed {
		b.due = true
		ctx.Send(a.kernel.domains[b.domain], b)
	}
	a.owed = nil
}
