package ipc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
)

const many = 10_000

// crowded returns a domain with many mailboxes that hold the given number of messages each.
func crowded(b *testing.B, messages int) *ipc.Domain {
	b.Helper()
	d := ipc.New(ipc.Options{})
	open, _ := schema.Lookup("Ipc.Open")
	pids := make([]int64, many)
	for i := range pids {
		pids[i] = int64(i) + 1
	}
	d.Apply(&kernel.Call{Request: kernel.Request{Syscall: open, Input: &schema.MailboxInput{PIDs: pids}}})
	var c calls
	for range messages {
		for _, pid := range pids {
			c.sendTo(b, d, 1, &schema.SendMsgInput{ReceiverPID: pid, Payload: payload()})
		}
	}
	return d
}

func payload() schema.Value { return schema.Value(`"` + strings.Repeat("x", 100) + `"`) }

type calls struct{ send, receive kernel.Call }

func (c *calls) sendTo(b *testing.B, d *ipc.Domain, from int64, in *schema.SendMsgInput) {
	call := &c.send
	call.Syscall, call.PID, call.Input = schema.SyscallSendMsg.Syscall, from, in
	result, err := d.Decide(call)
	if err != nil {
		b.Fatal(err)
	}
	call.Data = result.Data
	d.Apply(call)
}

func (c *calls) receiveOf(b *testing.B, d *ipc.Domain, pid int64, in *schema.ReceiveInput) {
	call := &c.receive
	call.Syscall, call.PID, call.Input = schema.IPCReceive.Syscall, pid, in
	result, err := d.Decide(call)
	if err != nil {
		b.Fatal(err)
	}
	if string(result.Data) == `{"messages":[]}` {
		b.Fatal("nothing there")
	}
	call.Data = result.Data
	d.Apply(call)
}

// BenchmarkSendAndReceive sends a message to each mailbox in turn, and receives the oldest one there.
func BenchmarkSendAndReceive(b *testing.B) {
	for _, held := range []int{0, 5, 49} {
		b.Run(fmt.Sprintf("holding %d", held), func(b *testing.B) {
			d := crowded(b, held)
			in, out := &schema.SendMsgInput{Payload: payload()}, &schema.ReceiveInput{}
			var c calls
			b.ReportAllocs()
			for pid := int64(1); b.Loop(); pid = pid%many + 1 {
				in.ReceiverPID = pid
				c.sendTo(b, d, 1, in)
				c.receiveOf(b, d, pid, out)
			}
		})
	}
}

// BenchmarkReceiveMany receives ten at a time, sent one by one.
func BenchmarkReceiveMany(b *testing.B) {
	d := crowded(b, 0)
	in, out := &schema.SendMsgInput{Payload: payload()}, &schema.ReceiveInput{Max: of(int64(10))}
	var c calls
	b.ReportAllocs()
	for pid := int64(1); b.Loop(); pid = pid%many + 1 {
		in.ReceiverPID = pid
		for range 10 {
			c.sendTo(b, d, 1, in)
		}
		c.receiveOf(b, d, pid, out)
	}
}

// BenchmarkBroadcast reaches every mailbox, which are emptied again.
func BenchmarkBroadcast(b *testing.B) {
	d := crowded(b, 0)
	row, _ := schema.Lookup("Ipc.Address")
	in, out := &schema.BroadcastInput{Payload: payload()}, &schema.ReceiveInput{}
	var c calls
	b.ReportAllocs()
	for b.Loop() {
		call := &kernel.Call{Request: kernel.Request{Syscall: schema.IPCBroadcast.Syscall, Input: in}}
		result, err := d.Decide(call)
		if err != nil {
			b.Fatal(err)
		}
		d.Apply(&kernel.Call{Request: kernel.Request{Syscall: row, Input: result.Steps[0].Input}})
		d.Apply(call)
		b.StopTimer()
		for pid := int64(1); pid <= many; pid++ {
			c.receiveOf(b, d, pid, out)
		}
		b.StartTimer()
	}
}

// BenchmarkSnapshot measures how long the domain is stopped.
func BenchmarkSnapshot(b *testing.B) {
	d := crowded(b, 5)
	b.ReportAllocs()
	for b.Loop() {
		d.Snapshot()
	}
}

func BenchmarkRestore(b *testing.B) {
	d := crowded(b, 5)
	b.ReportAllocs()
	for b.Loop() {
		fresh := ipc.New(ipc.Options{})
		if err := d.Snapshot()(fresh.Restore); err != nil {
			b.Fatal(err)
		}
	}
}
