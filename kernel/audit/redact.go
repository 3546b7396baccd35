package audit

import (
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Redact is the work of an Audit.Redact. It ends in a schema.AuditRedactOutput.
type Redact struct {
	Seq    uint64
	Member string // as a JSON pointer into the line
	Hash   string // of the entry in the chain; "" if any will do
}

func newRedact(_ *kernel.Call, in *schema.AuditRedactInput) (*Redact, error) {
	if !strings.HasPrefix(in.Member, "/") {
		return nil, kernel.Invalid("member", "must be a JSON pointer into the line, such as /request/data/value")
	}
	do := &Redact{Seq: uint64(in.Seq), Member: in.Member}
	if in.Hash != nil {
		do.Hash = *in.Hash
	}
	return do, nil
}

// redacted answers with what it records.
func redacted(_ *kernel.Call, in *schema.AuditRedactedInput) (schema.AuditRedactedInput, error) {
	return *in, nil
}
