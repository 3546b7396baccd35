package actors

import (
	"sync"

	"github.com/promptware-os/pwos/schema"
)

// ids makes ids for the kernel's own messages. It is safe for concurrent use.
type ids struct {
	mu      sync.Mutex
	stamper *schema.Stamper
}

func (i *ids) next() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stamper == nil {
		i.stamper = schema.NewStamper()
	}
	return i.stamper.NewID()
}
