// Package refer puts what calls refer to into them before they pass the gate, or long answers into blobs.
package refer

import (
	"bytes"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Binds returns what an approval binds of the files that the command of a use of a tool by pid names; nil: nothing.
type Binds func(pid int64, in *schema.ToolUseInput) schema.Value

// Reader reads files for calls. Its methods may be called by any goroutine that owns the call.
type Reader struct {
	Blobs        kernel.Blobs                // nil: this kernel has none
	Origin       func(*kernel.Caller) string // of the stored things that a caller sees
	JudgesBodies func() bool                 // whether a rule examines the bodies of fetches; nil: none does
	Binds        Binds                       // nil: nothing is bound
}

// Read reads what a call refers to, and puts it into the call. It sets the call's error if that fails.
func (r *Reader) Read(call *kernel.Call) {
	if in := referring(call); in != nil {
		call.Err = r.inline(call, in)
	}
	if in := r.noted(call); in != nil {
		call.Err = r.noteBody(call, in)
	}
	if in := r.commanding(call); in != nil {
		if in.Binds != nil {
			call.Err = kernel.Invalid("binds", "is added by the kernel: leave it out")
			return
		}
		call.Err = r.bindFiles(call, in)
	}
}

// MayChange reports whether what was read for a call may have changed while the call waited.
func (r *Reader) MayChange(call *kernel.Call) bool { return r.commanding(call) != nil }

// Again reads what may have changed while a call waited.
func (r *Reader) Again(call *kernel.Call) {
	if in := r.commanding(call); in != nil {
		call.Err = r.bindFiles(call, in)
	}
}

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
func (r *Reader) inline(call *kernel.Call, in schema.Referring) *fault.Fault {
	member, _, ref := in.Reference()
	if ref == nil {
		return nil
	}
	if r.Blobs == nil {
		return fault.BlobNotFound.New("this kernel has no blob directory")
	}
	content, err := r.Blobs.Read(call.Caller.PID, r.Origin(&call.Caller), ref.Pointer(), kernel.MaxInlined)
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

// Needs reports whether a file must be read for a call before it passes the gate.
func (r *Reader) Needs(call *kernel.Call) bool {
	return referring(call) != nil || r.noted(call) != nil || r.commanding(call) != nil
}

// commanding returns the use of a tool of whose command an approval binds the files, or nil.
func (r *Reader) commanding(call *kernel.Call) *schema.ToolUseInput {
	in, ok := call.Input.(*schema.ToolUseInput)
	if !ok || call.Err != nil || r.Binds == nil {
		return nil
	}
	return in
}

// bindFiles adds to a call what is bound of the files that its command names, in place of what was bound before. It reads files, as
// inline does.
func (r *Reader) bindFiles(call *kernel.Call, in *schema.ToolUseInput) *fault.Fault {
	pid := call.Caller.PID
	if on := in.On(); pid == kernel.Operator && on.PID != nil {
		pid = *on.PID
	}
	binds := r.Binds(pid, in)
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
func (r *Reader) noted(call *kernel.Call) *schema.HTTPFetchInput {
	in, ok := call.Input.(*schema.HTTPFetchInput)
	if !ok || call.Err != nil || in.BodyRef == nil || r.JudgesBodies == nil || !r.JudgesBodies() {
		return nil
	}
	return in
}

// noteBody adds to a call what the body of a fetch contains. It reads a file, as inline does.
func (r *Reader) noteBody(call *kernel.Call, in *schema.HTTPFetchInput) *fault.Fault {
	if r.Blobs == nil {
		return fault.BlobNotFound.New("this kernel has no blob directory")
	}
	who := call.Caller
	if on := in.On(); who.PID == kernel.Operator && on.PID != nil {
		who.PID = *on.PID
	}
	body, err := r.Blobs.Read(who.PID, r.Origin(&who), in.BodyRef.Pointer(), schema.MaxJudgedBody)
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
