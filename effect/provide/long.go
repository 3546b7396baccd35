package provide

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// MaxAnswer bounds an answer that a provider gives by reference, in bytes. One of more than kernel.MaxInlined is passed to the
// caller by reference too, so it is not in the journal.
const MaxAnswer = 16 << 20

// longAnswers is how many answers are read at a time, since they take memory.
const longAnswers = 2

// AnswersByRef reports whether a call is a Syscall.Complete whose answer is in a blob.
func AnswersByRef(call *kernel.Call) bool {
	in, ok := call.Input.(*schema.CompleteInput)
	return ok && call.Err == nil && in.DataRef != nil
}

// CompleteLong is Complete for an answer by reference, to a blob that the process pid of an origin can read. It reads and
// writes files. ending ends with the kernel.
func (p *Calls) CompleteLong(ending context.Context, blobs kernel.Blobs, pid int64, origin string, c Provider, in *schema.CompleteInput) *fault.Fault {
	p.mu.Lock()
	call := p.calls[in.CallID]
	p.mu.Unlock()
	switch {
	case given(in) != 1:
		return p.Complete(c, in) // to get the error
	case call == nil || call.by != c:
		return schema.NoCall(in.CallID)
	case blobs == nil:
		return fault.BlobNotFound.New("this kernel has no blob directory")
	}
	if err := in.DataRef.Valid("dataRef"); err != nil {
		return err
	}
	select {
	case p.long <- struct{}{}:
		defer func() { <-p.long }()
	case <-ending.Done():
		return kernel.ErrStopping
	}
	content, err := blobs.Read(pid, origin, in.DataRef.Pointer(), MaxAnswer)
	if err != nil {
		return fault.Of(err)
	}
	data, wrong := schema.OneLine("data", content, in.DataRef.Pointer().Text())
	switch {
	case wrong != nil:
		return wrong
	case len(data) <= kernel.MaxInlined:
		return p.Complete(c, &schema.CompleteInput{CallID: in.CallID, Data: data})
	case !schema.ValidWithin(data, schema.MaxKeptDepth):
		return kernel.Invalid("dataRef", "must not refer to what is nested deeper than %d levels", schema.MaxKeptDepth)
	}
	o := answer{err: call.check(data)}
	if o.err == nil {
		sum := sha256.Sum256(data)
		o.elsewhere = &kernel.Elsewhere{Digest: "sha256-" + base64.StdEncoding.EncodeToString(sum[:])}
		o.data, o.elsewhere.Refs, err = schema.Refer(schema.SyscallInvoke.Output(), data, 0, func(content []byte, text bool) (schema.BlobPointer, error) {
			return blobs.Put(call.pid, call.origin, text, bytes.NewReader(content))
		})
		if err != nil {
			return fault.Of(err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[in.CallID] != call {
		return schema.NoCall(in.CallID)
	}
	p.answer(in.CallID, call, o)
	return nil
}
