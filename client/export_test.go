package client

import (
	"context"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
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

// Blobs returns the errors with which a client on channel reads the file at path, and writes a blob for its kernel.
func Blobs(channel access.Channel, path, dir string) (read, written error) {
	c := newClient(newConn(nil, 0, channel))
	c.places.Blobs = dir
	_, read = c.readBlob(schema.BlobPointer{Scheme: "file", Path: path})
	_, _, written = c.PutBlob(nil)
	return read, written
}
