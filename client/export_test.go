package client

import (
	"context"
	"time"
)

// KindOf is kindOf.
var KindOf = kindOf

// LaunchFailed is launchFailed.
var LaunchFailed = launchFailed

// Patience is patience.
type Patience struct{ *patience }

// NewPatience is newPatience.
func NewPatience(ctx context.Context, limit time.Duration, spent error) Patience {
	return Patience{newPatience(ctx, limit, spent)}
}

// Rest and Finish are its methods.
func (p Patience) Rest() (resume func()) { return p.rest() }
func (p Patience) Finish()               { p.done() }
