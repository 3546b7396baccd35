package actors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// MaxAnswer is how many bytes the answer of a provider may have that comes by reference. One of more than MaxInlined goes to its caller by
// reference too, and so does not stand in the journal.
const MaxAnswer = 16 << 20

// longAnswers is how many answers are read at the same time, since they take memory.
const longAnswers = 2

// answersByRef reports whether a call is a Syscall.Complete whose answer is in a blob.
func answersByRef(call *kernel.Call) bool {
	in, ok := call.Input.(*schema.CompleteInput)
	return ok && call.Err == nil && in.DataRef != nil
}

// completeLong is complete for an answer that comes by reference. It reads and writes files. ending ends with the kernel.
func (p *providers) completeLong(ending context.Context, k *Kernel, c *connection, in *schema.CompleteInput) *fault.Fault {
	p.mu.Lock()
	call := p.calls[in.CallID]
	p.mu.Unlock()
	switch {
	case given(in) != 1:
		return p.complete(c, in) // which says what is wrong
	case call == nil || call.by != c:
		return schema.NoCall(in.CallID)
	case k.blobs == nil:
		return fault.BlobNotFound.New("this kernel has no blob directory")
	}
	if err := in.DataRef.Valid("dataRef"); err != nil {
		return err
	}
	select {
	case p.long <- struct{}{}:
		defer func() { <-p.long }()
	case <-ending.Done():
		return errEnding
	}
	content, err := k.blobs.Read(c.caller.PID, k.originOf(&c.caller), in.DataRef.Pointer(), MaxAnswer)
	if err != nil {
		return fault.Of(err)
	}
	data, wrong := schema.InLine("data", content, in.DataRef.Pointer().Text())
	switch {
	case wrong != nil:
		return wrong
	case len(data) <= MaxInlined:
		return p.complete(c, &schema.CompleteInput{CallID: in.CallID, Data: data})
	case !schema.ValidWithin(data, schema.MaxKeptDepth):
		return kernel.Invalid("dataRef", "must not refer to what is nested deeper than %d levels", schema.MaxKeptDepth)
	}
	o := answer{err: call.check(data)}
	if o.err == nil {
		sum := sha256.Sum256(data)
		o.elsewhere = &kernel.Elsewhere{Digest: "sha256-" + base64.StdEncoding.EncodeToString(sum[:])}
		o.data, o.elsewhere.Refs, err = schema.Refer(schema.SyscallInvoke.Output(), data, 0, func(content []byte, text bool) (schema.BlobPointer, error) {
			return k.blobs.Put(call.pid, call.origin, text, bytes.NewReader(content))
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
