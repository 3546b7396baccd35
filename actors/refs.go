package actors

import (
	"bytes"
	"io"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Blobs keeps what does not fit a line (MESSAGE 4.3.2). Its errors wrap a *fault.Fault where a client may see them. It is
// safe for concurrent use; it is called on the goroutines of the connection that needs it.
type Blobs interface {
	// Put writes a blob of an origin from r, for a process.
	Put(pid int64, origin string, r io.Reader) (schema.BlobPointer, error)
	// Read returns what a reference of a process, and of its origin, names, at most so many bytes.
	Read(pid int64, origin string, p schema.BlobPointer, most int64) ([]byte, error)
}

// MaxInlined is how many bytes a value may have that a call brings by reference: it is put into the call, and so into the
// journal, as if it had come on the line, so that a replay does not need the blob.
const MaxInlined = 1_000_000

// inline puts what a call brings by reference into the call. A call without reference is left as it is.
func (k *Kernel) inline(call *kernel.Call, in schema.Referring) *fault.Fault {
	member, _, ref := in.Reference()
	if ref == nil {
		return nil
	}
	if k.blobs == nil {
		return fault.BlobNotFound.New("this kernel has no blob directory")
	}
	content, err := k.blobs.Read(call.Caller.PID, k.originOf(&call.Caller), ref.Pointer(), MaxInlined)
	if err != nil {
		return fault.Of(err)
	}
	data, failed := schema.Inline(call.Message.Data, member, content)
	if failed != nil {
		return failed
	}
	call.Message.Data = data
	call.Input, failed = call.Syscall.Input().Decode(data)
	return failed
}

// originOf is whose blobs the caller may refer to.
func (k *Kernel) originOf(caller *kernel.Caller) string {
	if p := k.processes.Process(caller.PID); p != nil {
		return p.Origin
	}
	if caller.Origin != "" {
		return caller.Origin
	}
	return k.origin
}

// refer encodes an answer that does not fit a line as one that refers to what is too long. Where that could not be kept, the
// answer is an error; what the call did, it has done.
func (w *writer) refer(call *kernel.Call, stamp *schema.Stamp, short, refs []byte, err error) {
	w.open()
	if err != nil {
		shown := fault.Of(err)
		*w.buf = schema.AppendError(*w.buf, &call.Message, &fault.Fault{
			Kind: shown.Kind, ID: shown.ID, Message: "the answer does not fit a line, and cannot be kept beside it; the call itself was done", Cause: shown,
		}, stamp)
		return
	}
	stamp.Refs = refs
	*w.buf = schema.AppendReply(*w.buf, &call.Message, short, stamp)
}

// refsRoom is what the metadata says of references, more or less.
const refsRoom = 256

// elsewhere returns data that is shorter by what it has over, with its largest members put into the blob directory.
func (k *Kernel) elsewhere(call *kernel.Call, data []byte, over int) (short, refs []byte, err error) {
	row := call.Syscall
	switch {
	case k.blobs == nil:
		return nil, nil, fault.BlobNoRoom.New("this kernel has no blob directory")
	case row.Domain == schema.Crypto:
		return nil, nil, fault.BlobNoRoom.New("what is opened is not written to a file")
	}
	return schema.Refer(row.Output(), data, len(data)-over-refsRoom, func(content []byte) (schema.BlobPointer, error) {
		return k.blobs.Put(call.PID, call.Origin, bytes.NewReader(content))
	})
}
