package client

import (
	"context"
	"time"
)

// KindOf is what a stream counts a frame as.
var KindOf = kindOf

// LaunchFailed is the fault of a start that failed.
var LaunchFailed = launchFailed

// Patience is how long Dial waits.
type Patience struct{ *patience }

// NewPatience starts its clock.
func NewPatience(ctx context.Context, limit time.Duration, spent error) Patience {
	return Patience{newPatience(ctx, limit, spent)}
}

// Rest and Finish reach its methods.
func (p Patience) Rest() (resume func()) { return p.rest() }
func (p Patience) Finish()               { p.done() }
