package process_test

import (
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

const many = 10_000

// table returns a domain with many living processes.
func table(b *testing.B) *process.Domain {
	d := process.New(pools)
	spawnMany(b, d, many, func(pid int64) int64 { return pid / 2 })
	return d
}

func BenchmarkView(b *testing.B) {
	view := table(b).Processes()
	b.RunParallel(func(pb *testing.PB) {
		for pid := int64(1); pb.Next(); pid = pid%many + 1 {
			if view.Process(pid) == nil {
				b.Error("no process")
			}
		}
	})
}

// BenchmarkSpawnAndTerminate measures both with their publication.
func BenchmarkSpawnAndTerminate(b *testing.B) {
	d := table(b)
	in := &schema.SpawnInput{ChildAgentID: "b"}
	var spawn, prepare, terminate, exit kernel.Call
	b.ReportAllocs()
	for next := int64(many + 1); b.Loop(); next++ {
		spawn = kernel.Call{Request: kernel.Request{Syscall: schema.SyscallSpawn.Syscall, Input: in}, Decision: kernel.Decision{Origin: home}}
		result, err := d.Decide(&spawn)
		if err != nil {
			b.Fatal(err)
		}
		prepare = kernel.Call{Request: kernel.Request{Syscall: schema.ProcessPrepare.Syscall, Input: result.Steps[0].Input}}
		d.Apply(&prepare)
		spawn.Data = result.Data
		d.Apply(&spawn)
		d.Publish()
		terminate = kernel.Call{Request: kernel.Request{Syscall: schema.SyscallTerminate.Syscall, Input: &schema.TerminateInput{TargetPID: next}}}
		if result, err = d.Decide(&terminate); err != nil {
			b.Fatal(err)
		}
		exit = kernel.Call{Request: kernel.Request{Syscall: schema.ProcessExit.Syscall, Input: result.Steps[0].Input}}
		d.Apply(&exit)
		d.Publish()
	}
}

func BenchmarkGet(b *testing.B) {
	d := table(b)
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.ProcessGet.Syscall, Input: &schema.ProcessGetInput{PID: many}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decide(call); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	d := table(b)
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.ProcessList.Syscall, Input: &schema.ProcessListInput{}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decide(call); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnapshot measures how long the domain is stopped, BenchmarkRestore a start.
func BenchmarkSnapshot(b *testing.B) {
	d := table(b)
	b.ReportAllocs()
	for b.Loop() {
		d.Snapshot()
	}
}

func BenchmarkRestore(b *testing.B) {
	d := table(b)
	b.ReportAllocs()
	for b.Loop() {
		restore(b, d)
	}
}
