package actors

import (
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// SpillReply and SpillEvent encode a line of at most limit bytes, with longer members stored as blobs.
func SpillReply(blobs kernel.Blobs, limit int, call *kernel.Call) []byte {
	stamp := schema.NewStamper().Next(time.Now())
	return spill{blobs, limit}.reply(nil, call, &stamp)
}

func SpillEvent(blobs kernel.Blobs, limit int, call *kernel.Call, e *kernel.Event) []byte {
	stamp := schema.NewStamper().Next(time.Now())
	return spill{blobs, limit}.event(nil, call, e, &stamp)
}
