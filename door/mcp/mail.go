package mcp

import (
	"bytes"
	"context"
	"slices"

	"github.com/promptware-os/pwos/schema"
)

// receiving returns the arguments of an Ipc.Receive such that what it delivers stays in the mailbox until the host has it: a host that dies
// with the answer gets it again when it is started again. A host that says itself what to do is left to that.
func (b *Bridge) receiving(typ string, data []byte) []byte {
	if typ != schema.IPCReceive.Row().Type || !b.mayCall(schema.IPCAck.Row().Type) {
		return data
	}
	members, err := schema.TypeOf[map[string]schema.Value]().Decode(data)
	if err != nil {
		return data // the kernel says so
	}
	all := *members.(*map[string]schema.Value)
	if _, given := all["ack"]; given {
		return data
	}
	data = bytes.TrimSpace(data)
	data = slices.Clip(data[:len(data)-1])
	if len(all) > 0 {
		data = append(data, ',')
	}
	return append(data, `"ack":true}`...)
}

func (b *Bridge) mayCall(typ string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.may != nil && slices.Contains(b.may.Syscalls, typ)
}

// received notes the messages of an answer to what receiving returned.
func (b *Bridge) received(data schema.Value) {
	out, err := schema.IPCReceive.Decode(data)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range out.Messages {
		b.mail = append(b.mail, out.Messages[i].MsgID)
	}
}

// acknowledge takes the messages out of the mailbox that the host has: it makes another call after their answer. Of calls side by side, one
// that begins after that answer counts, although the host may not have read it. If that fails, they are taken out
// later, or delivered again.
func (b *Bridge) acknowledge(ctx context.Context) {
	b.mu.Lock()
	ids := b.mail
	b.mail = nil
	b.mu.Unlock()
	if len(ids) == 0 || !b.mayCall(schema.IPCAck.Row().Type) { // it may have been taken away meanwhile
		return
	}
	data, err := schema.IPCAck.Encode(&schema.MailAckInput{MsgIDs: ids})
	if err == nil {
		_, err = b.link.do(ctx, schema.KindCommand, schema.IPCAck.Row().Type, data)
	}
	if err != nil {
		b.mu.Lock()
		b.mail = append(ids, b.mail...)
		b.mu.Unlock()
	}
}
