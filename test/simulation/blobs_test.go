package simulation_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// longLink is the line limit of some connections, in bytes. A line of that length is decoded outside the loop.
const longLink = 256 << 10

// nowhere is the path of a blob that does not exist.
const nowhere = "/blobs/none"

// shelf stores blobs in memory, across restarts of the kernel.
type shelf struct {
	mu    sync.Mutex
	blobs map[string][]byte
}

var _ kernel.Blobs = (*shelf)(nil)

// Put implements kernel.Blobs.
func (s *shelf) Put(_ int64, _ string, _ bool, r io.Reader) (schema.BlobPointer, error) {
	content, err := io.ReadAll(r)
	return s.put(content), err
}

func (s *shelf) put(content []byte) schema.BlobPointer {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := fmt.Sprintf("/blobs/%d", len(s.blobs)+1)
	s.blobs[path] = content
	return schema.BlobPointer{Scheme: "file", Path: path}
}

// Read implements kernel.Blobs.
func (s *shelf) Read(_ int64, _ string, p schema.BlobPointer, most int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.blobs[p.Path]
	if !ok || int64(len(content)) > most {
		return nil, fault.BlobNotFound.New("no blob is there")
	}
	return bytes.Clone(content), nil
}

// value draws the member of a value to set: usually short, sometimes long, sometimes a reference to a blob.
func (w *world) value(c *client, id string) string {
	elsewhere := w.r.IntN(30) == 0
	long := w.r.IntN(1 + w.r.IntN(400))
	if c.pid != kernel.Operator || w.drops("long") { // an agent has a bound on what is in flight
		return fmt.Sprintf(`"value":{"by":%q,"pad":%q}`, id, strings.Repeat("x", long))
	}
	switch n := w.r.IntN(80); {
	case n == 0 && c.link.LineLimit() > schema.MaxLine: // decoded outside the loop
		long = 64<<10 + w.r.IntN(4<<10)
	case n < 3 && (elsewhere || c.link.LineLimit() > schema.MaxLine): // exceeds the line limit of some connections
		long = schema.MaxLine + w.r.IntN(4<<10)
	case n < 5:
		long = w.r.IntN(12 << 10)
	}
	value := fmt.Sprintf(`{"by":%q,"pad":%q}`, id, strings.Repeat("x", long))
	switch {
	case !elsewhere:
		return `"value":` + value
	case w.r.IntN(4) == 0:
		return `"valueRef":{"scheme":"file","path":"` + nowhere + `"}`
	}
	p := w.blobs.put([]byte(value))
	return `"valueRef":` + string(p.Append(nil))
}

// whole returns the data of an answer, with the content of blobs that it refers to.
func (w *world) whole(q *request) string {
	if q.refs == "" {
		return q.data
	}
	row, _ := schema.Lookup(q.typ)
	return string(schema.Resolve(row.Output(), []byte(q.data), []byte(q.refs), func(p schema.BlobPointer) ([]byte, error) {
		return w.blobs.Read(0, "", p, kernel.MaxInlined)
	}))
}
