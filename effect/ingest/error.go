package ingest

import "github.com/promptware-os/pwos/schema/fault"

// invalid is front matter that cannot be read, or of which a member has the wrong type.
func invalid(format string, args ...any) *fault.Fault {
	return fault.IngestInvalid.New("front matter is not valid: "+format, args...)
}

func tooLarge(most int64) *fault.Fault {
	return fault.FileTooLarge.New("the file is too large: more than %d bytes", most)
}
