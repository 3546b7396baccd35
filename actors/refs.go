package actors

import (
	"bytes"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// referring returns the input of a call that refers to a blob, or nil.
func referring(call *kernel.Call) schema.Referring {
	in, ok := call.Input.(schema.Referring)
	if !ok || call.Err != nil {
		return nil
	}
	if _, _, ref := in.Reference(); ref == nil {
		return nil
	}
	return in
}

// inline puts the content of a reference into the call. It reads a file and uses only the call, so any goroutine may call
// it.
func (k *Kernel) inline(call *kernel.Call, in schema.Referring) *fault.Fault {
	member, _, ref := in.Reference()
	if ref == nil {
		return nil
	}
	if k.blobs == nil {
		return fault.BlobNotFound.New("this kernel has no blob directory")
	}
	content, err := k.blobs.Read(call.Caller.PID, k.originOf(&call.Caller), ref.Pointer(), kernel.MaxInlined)
	if err != nil {
		return fault.Of(err)
	}
	data, failed := schema.Inline(call.Message.Data, member, content, ref.Pointer().Text())
	if failed != nil {
		return failed
	}
	call.Message.Data = data
	call.Input, failed = call.Syscall.Input().Decode(data)
	return failed
}

// needsReading reports whether a file must be read for a call before it passes the gate.
func (k *Kernel) needsReading(call *kernel.Call) bool {
	return referring(call) != nil || k.noted(call) != nil || k.commanding(call) != nil
}

// commanding returns the use of a tool of whose command an approval binds the files, or nil.
func (k *Kernel) commanding(call *kernel.Call) *schema.ToolUseInput {
	in, ok := call.Input.(*schema.ToolUseInput)
	if !ok || call.Err != nil || k.binds == nil {
		return nil
	}
	return in
}

// bindFiles adds to a call what is bound of the files that its command names, in place of what was bound before. It reads files, as
// inline does.
func (k *Kernel) bindFiles(call *kernel.Call, in *schema.ToolUseInput) *fault.Fault {
	pid := call.Caller.PID
	if on := in.On(); pid == kernel.Operator && on.PID != nil {
		pid = *on.PID
	}
	binds := k.binds(pid, in)
	if binds == nil && in.Binds == nil {
		return nil
	}
	next := *in
	next.Binds = binds
	data, err := schema.Marshal(&next)
	if err != nil {
		return fault.Of(err)
	}
	call.Message.Data, call.Input = data, &next
	return nil
}

// noted returns a fetch whose body is in a blob that a rule examines, or nil.
func (k *Kernel) noted(call *kernel.Call) *schema.HTTPFetchInput {
	in, ok := call.Input.(*schema.HTTPFetchInput)
	if !ok || call.Err != nil || in.BodyRef == nil || k.judgesBodies == nil || !k.judgesBodies() {
		return nil
	}
	return in
}

// noteBody adds to a call what the body of a fetch contains. It reads a file, as inline does.
func (k *Kernel) noteBody(call *kernel.Call, in *schema.HTTPFetchInput) *fault.Fault {
	if k.blobs == nil {
		return fault.BlobNotFound.New("this kernel has no blob directory")
	}
	who := call.Caller
	if on := in.On(); who.PID == kernel.Operator && on.PID != nil {
		who.PID = *on.PID
	}
	body, err := k.blobs.Read(who.PID, k.originOf(&who), in.BodyRef.Pointer(), schema.MaxJudgedBody)
	if err != nil {
		return fault.Of(err)
	}
	is := schema.ContentOf(body)
	if in.BodyContent != nil {
		if *in.BodyContent != *is {
			return kernel.Invalid("bodyContent", "is not what bodyRef refers to")
		}
		return nil
	}
	text, err := schema.Marshal(is)
	if err != nil {
		return fault.Of(err)
	}
	data := bytes.TrimRight(call.Message.Data, " \t\r\n")
	call.Message.Data = slices.Concat(data[:len(data)-1], []byte(`,"bodyContent":`), text, []byte{'}'})
	in.BodyContent = is
	return nil
}

// originOf returns the origin of the blobs that a caller may refer to.
func (k *Kernel) originOf(caller *kernel.Caller) string {
	if p := k.processes.Process(caller.PID); p != nil {
		return p.Origin
	}
	if caller.Origin != "" {
		return caller.Origin
	}
	return k.origin
}

// spill stores the long members of answers and events that do not fit a line as blobs. It writes files and uses only its
// arguments, so any goroutine may call it.
type spill struct {
	blobs kernel.Blobs // nil: there are none
	limit int          // of a line, in bytes, without its '\n'
}

// reply appends the answer to a call that succeeded. If a long member cannot be stored, the answer is an error, although
// the call was done.
func (s spill) reply(dst []byte, call *kernel.Call, stamp *schema.Stamp) []byte {
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

// event appends an event of the subscription that call made. If a long member cannot be stored, the event is sent
// unchanged, since it cannot be requested again.
func (s spill) event(dst []byte, call *kernel.Call, e *kernel.Event, stamp *schema.Stamp) []byte {
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

// over is by how many bytes a line, with its '
// ', is too long.
func (s spill) over(line []byte) int { return len(line) - 1 - s.limit }

// refsRoom is about the size of the references in the metadata, in bytes.
const refsRoom = 256

// elsewhere returns data shortened by over bytes, with its largest members stored as blobs.
func (s spill) elsewhere(call *kernel.Call, data []byte, over int) (short, refs []byte, err error) {
	row := call.Syscall
	switch {
	case s.blobs == nil:
		return nil, nil, fault.BlobNoRoom.New("this kernel has no blob directory")
	case row.Domain == schema.Crypto:
		return nil, nil, fault.BlobNoRoom.New("what is opened is not written to a file")
	}
	return schema.Refer(row.Output(), data, len(data)-over-refsRoom, func(content []byte, text bool) (schema.BlobPointer, error) {
		return s.blobs.Put(call.PID, call.Origin, text, bytes.NewReader(content))
	})
}
