package schema_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestOutcomeIsReadAsWritten checks that an outcome may be nested deeper than a frame, because it wraps the data of a frame. If it
// could not be decoded, the kernel could not restart.
func TestOutcomeIsReadAsWritten(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{1, schema.MaxKeptDepth, schema.MaxDepth, schema.MaxDepth + 32} {
		data := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		raw := schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Data: []byte(data)})
		if o, fault := schema.DecodeOutcome(raw); fault != nil || string(o.Data) != data {
			t.Errorf("depth %d: %s, %v", depth, o.Data, fault)
		}
	}
}
