package refer

import (
	"bytes"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Spill stores the long members of answers and events that do not fit a line as blobs. It writes files and uses only its
// arguments, so any goroutine may call it.
type Spill struct {
	Blobs kernel.Blobs // nil: there are none
	Limit int          // of a line, in bytes, without its '\n'
}

// Reply appends the answer to a call that succeeded. If a long member cannot be stored, the answer is an error, although
// the call was done.
func (s Spill) Reply(dst []byte, call *kernel.Call, stamp *schema.Stamp) []byte {
	begin := len(dst)
	data, _ := call.Answered()
	dst = schema.AppendReply(dst, &call.Message, data, stamp)
	over := s.over(dst[begin:])
	if over <= 0 {
		return dst
	}
	short, refs, err := s.elsewhere(call, data, over)
	if err != nil {
		shown := fault.Of(err)
		return schema.AppendError(dst[:begin], &call.Message, &fault.Fault{
			Kind: shown.Kind, ID: shown.ID, Message: "the answer does not fit a line, and cannot be stored as a blob; the call itself was done", Cause: shown,
		}, stamp)
	}
	own := *stamp
	own.Refs = refs
	return schema.AppendReply(dst[:begin], &call.Message, short, &own)
}

// Event appends an event of the subscription that call made. If a long member cannot be stored, the event is sent
// unchanged, since it cannot be requested again.
func (s Spill) Event(dst []byte, call *kernel.Call, e *kernel.Event, stamp *schema.Stamp) []byte {
	meta := schema.Metadata{Causation: e.Causation, Correlation: e.Correlation}
	begin := len(dst)
	dst = schema.AppendEvent(dst, call.Message.Dialect, e.Type, e.Data, meta, stamp)
	over := s.over(dst[begin:])
	if over <= 0 {
		return dst
	}
	short, refs, err := s.elsewhere(call, e.Data, over)
	if err != nil {
		return dst
	}
	own := *stamp
	own.Refs = refs
	return schema.AppendEvent(dst[:begin], call.Message.Dialect, e.Type, short, meta, &own)
}

// over is by how many bytes a line is too long, without its end.
func (s Spill) over(line []byte) int { return len(line) - 1 - s.Limit }

// refsRoom is about the size of the references in the metadata, in bytes.
const refsRoom = 256

// elsewhere returns data shortened by over bytes, with its largest members stored as blobs.
func (s Spill) elsewhere(call *kernel.Call, data []byte, over int) (short, refs []byte, err error) {
	row := call.Syscall
	switch {
	case s.Blobs == nil:
		return nil, nil, fault.BlobNoRoom.New("this kernel has no blob directory")
	case row.Domain == schema.Crypto:
		return nil, nil, fault.BlobNoRoom.New("what is opened is not written to a file")
	}
	return schema.Refer(row.Output(), data, len(data)-over-refsRoom, func(content []byte, text bool) (schema.BlobPointer, error) {
		return s.Blobs.Put(call.PID, call.Origin, text, bytes.NewReader(content))
	})
}
