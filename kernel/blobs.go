package kernel

import (
	"io"

	"github.com/promptware-os/pwos/schema"
)

// Blobs stores values that do not fit a line (MESSAGE 4.3.2). An error that a client may see wraps a *fault.Fault. It
// is safe for concurrent use; its methods do file I/O.
type Blobs interface {
	// Put writes a blob of an origin from r, for a process. text says that it is the text of a string.
	Put(pid int64, origin string, text bool, r io.Reader) (schema.BlobPointer, error)
	// Read returns at most most bytes of what a reference of a process, and of its origin, refers to.
	Read(pid int64, origin string, p schema.BlobPointer, most int64) ([]byte, error)
}

// MaxInlined bounds a value that a call refers to, in bytes. It is put into the call, and so into the journal, as if it had
// been in the line. A replay does not need the blob.
const MaxInlined = 1_000_000
