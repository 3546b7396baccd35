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
	d.Apply(&kernel.Call{Syscall: open, Input: &schema.MailboxInput{PIDs: pids}})
	for range messages {
		for _, pid := range pids {
			send(b, d, 1, &schema.SendMsgInput{ReceiverPID: pid, Payload: payload()})
		}
	}
	return d
}

func payload() schema.Value { return schema.Value(`"` + strings.Repeat("x", 100) + `"`) }

func send(b *testing.B, d *ipc.Domain, from int64, in *schema.SendMsgInput) {
	call := &kernel.Call{PID: from, Input: in}
	result, err := d.Decide(call)
	if err != nil {
		b.Fatal(err)
	}
	call.Data = result.Data
	d.Apply(call)
}

func receive(b *testing.B, d *ipc.Domain, pid int64, in *schema.ReceiveInput) {
	call := &kernel.Call{PID: pid, Input: in}
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
			b.ReportAllocs()
			for pid := int64(1); b.Loop(); pid = pid%many + 1 {
				in.ReceiverPID = pid
				send(b, d, 1, in)
				receive(b, d, pid, out)
			}
		})
	}
}

// BenchmarkReceiveMany receives ten at a time, sent one by one.
func BenchmarkReceiveMany(b *testing.B) {
	d := crowded(b, 0)
	in, out := &schema.SendMsgInput{Payload: payload()}, &schema.ReceiveInput{Max: of(int64(10))}
	b.ReportAllocs()
	for pid := int64(1); b.Loop(); pid = pid%many + 1 {
		in.ReceiverPID = pid
		for range 10 {
			send(b, d, 1, in)
		}
		receive(b, d, pid, out)
	}
}

// BenchmarkBroadcast reaches every mailbox, which are emptied again.
func BenchmarkBroadcast(b *testing.B) {
	d := crowded(b, 0)
	row, _ := schema.Lookup("Ipc.Address")
	in, out := &schema.BroadcastInput{Payload: payload()}, &schema.ReceiveInput{}
	b.ReportAllocs()
	for b.Loop() {
		call := &kernel.Call{Input: in}
		result, err := d.Decide(call)
		if err != nil {
			b.Fatal(err)
		}
		d.Apply(&kernel.Call{Syscall: row, Input: result.Steps[0].Input})
		d.Apply(call)
		b.StopTimer()
		for pid := int64(1); pid <= many; pid++ {
			receive(b, d, pid, out)
		}
		b.StartTimer()
	}
}

// BenchmarkSnapshot measures what holds up the domain; BenchmarkRestore what a start costs.
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
