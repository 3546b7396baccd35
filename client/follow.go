package client

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/promptware-os/pwos/schema"
)

// follow puts in place of an answer's references what they stand for (PROTOCOL 5): those that the kernel made because the
// answer did not fit a line, and those to a text that its syscall describes. What cannot be read here stays a reference.
func follow(m *schema.Message) {
	row, ok := schema.Lookup(m.Type)
	if m.Kind != schema.KindReply || !ok {
		return
	}
	m.Data = schema.Resolve(row.Output(), m.Data, []byte(m.Meta.Refs), readBlob)
	m.Meta.Refs = ""
}

// errNoBlob says that a reference is to no file.
var errNoBlob = errors.New("reference to no regular file")

// readBlob reads a file that the kernel refers to.
func readBlob(p schema.BlobPointer) (content []byte, err error) {
	if p.Scheme != "file" {
		return nil, errNoBlob
	}
	f, err := os.Open(p.Path)
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errNoBlob
	}
	return io.ReadAll(f)
}
