package refer_test

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/refer"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// memory stores blobs in memory, or refuses them.
type memory struct {
	err error

	mu    sync.Mutex
	blobs [][]byte
}

func (s *memory) Put(_ int64, _ string, _ bool, r io.Reader) (schema.BlobPointer, error) {
	content, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs = append(s.blobs, content)
	return schema.BlobPointer{Scheme: "file", Path: "/" + strconv.Itoa(len(s.blobs))}, errors.Join(err, s.err)
}

func (s *memory) Read(int64, string, schema.BlobPointer, int64) ([]byte, error) { return nil, s.err }

// TestSpillAtOnce encodes answers that are too long on many goroutines at a time: each line is complete and refers to the
// blobs that were stored for it.
func TestSpillAtOnce(t *testing.T) {
	t.Parallel()
	const limit = 4 << 10
	s := &memory{}
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.MemoryGet.Row()}, Outcome: kernel.Outcome{Data: []byte(`"` + strings.Repeat("x", 2*limit) + `"`)}}
	call.Message.Type = call.Syscall.Type
	told := &kernel.Event{Type: "Memory.Told", Data: call.Data}
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			for _, line := range [][]byte{reply(s, limit, call), event(s, limit, call, told)} {
				if len(line) > limit+1 || !schema.Valid(bytes.TrimSuffix(line, []byte("\n"))) || !bytes.Contains(line, []byte(`"valueRef"`)) {
					t.Errorf("line of %d bytes: %.200s", len(line), line)
				}
			}
		})
	}
	work.Wait()
	if len(s.blobs) != 32 || len(s.blobs[0]) != 2*limit {
		t.Errorf("%d blobs, the first of %d bytes", len(s.blobs), len(s.blobs[0]))
	}
	s.err = errors.New("no room")
	if line := reply(s, limit, call); !bytes.Contains(line, []byte("the call itself was done")) {
		t.Errorf("without room: %s", line)
	}
	if line := event(s, limit, call, told); len(line) < 2*limit {
		t.Errorf("an event that cannot be kept was left out: %s", line)
	}
	call.Data = []byte(`"short"`)
	if line := reply(s, limit, call); !bytes.Contains(line, call.Data) {
		t.Errorf("short answer: %s", line)
	}
}

func reply(blobs kernel.Blobs, limit int, call *kernel.Call) []byte {
	stamp := schema.NewStamper().Next(time.Now())
	return refer.Spill{Blobs: blobs, Limit: limit}.Reply(nil, call, &stamp)
}

func event(blobs kernel.Blobs, limit int, call *kernel.Call, e *kernel.Event) []byte {
	stamp := schema.NewStamper().Next(time.Now())
	return refer.Spill{Blobs: blobs, Limit: limit}.Event(nil, call, e, &stamp)
}
