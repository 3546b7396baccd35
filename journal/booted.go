package journal

import (
	"bytes"

	"github.com/promptware-os/pwos/schema"
)

// Booted returns what the entry of a kernel's start says, nil for any other entry.
func Booted(rec *Record) *schema.BootedInput {
	row := schema.KernelBooted
	if rec.PID != 0 || !bytes.Contains(rec.Request, []byte(`"type":"`+row.Type+`"`)) {
		return nil
	}
	msg, failure := schema.Decode(rec.Request, schema.OsMessage)
	outcome, refused := schema.DecodeOutcome(rec.Outcome)
	if failure != nil || refused != nil || msg.Type != row.Type || outcome.Err != nil {
		return nil
	}
	in, failed := row.Input().Decode(msg.Data)
	if failed != nil {
		return nil
	}
	return in.(*schema.BootedInput)
}
