package audit

import (
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Archive is the work of an Audit.Archive. It ends in a schema.AuditArchiveOutput.
type Archive struct {
	Directory string
	Seq       uint64 // only entries before this one; 0: before Time
	Time      int64  // Unix milliseconds
}

func newArchive(_ *kernel.Call, in *schema.AuditArchiveInput) (*Archive, error) {
	if (in.BeforeSeq == nil) == (in.BeforeTime == nil) {
		return nil, kernel.Invalid("before_seq", "or before_time is required, and not both")
	}
	if !filepath.IsAbs(in.Directory) {
		return nil, kernel.Invalid("directory", "must be an absolute path: the kernel's own directory is not the caller's")
	}
	do := &Archive{Directory: filepath.Clean(in.Directory)}
	if in.BeforeSeq != nil {
		do.Seq = uint64(*in.BeforeSeq)
	} else {
		do.Time = *in.BeforeTime
	}
	return do, nil
}

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
