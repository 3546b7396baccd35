package memory_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/schema"
)

const million = 1_000_000

// benchKey spreads the numbers below a million over the key space.
func benchKey(i int) string { return fmt.Sprintf("bench/%07d", i*7_368_787%million) }

// benchValue has 64 bytes.
const benchValue = `"0123456789012345678901234567890123456789012345678901234567890_"`

func filled(b *testing.B) *memory.Domain {
	b.Helper()
	d := newDomain(b, nil)
	for i := range million {
		d.Apply(&kernel.Call{Request: kernel.Request{Syscall: schema.MemorySet.Syscall, Input: &schema.MemorySetInput{Key: benchKey(i), Value: schema.Value(benchValue)}}, Decision: kernel.Decision{Origin: home}})
	}
	return d
}

func BenchmarkGet(b *testing.B) {
	d := filled(b)
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.MemoryGet.Syscall}, Decision: kernel.Decision{Origin: home}}
	keys := make([]schema.MemoryGetInput, million)
	for i := range keys {
		keys[i].Key = benchKey(i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		call.Input = &keys[i%million]
		if _, err := d.Decide(call); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkSet(b *testing.B) {
	for name, snapshotted := range map[string]bool{"alone": false, "after a snapshot each 10000": true} {
		b.Run(name, func(b *testing.B) {
			d := filled(b)
			call := &kernel.Call{Request: kernel.Request{Syscall: schema.MemorySet.Syscall}, Decision: kernel.Decision{Origin: home}}
			keys := make([]schema.MemorySetInput, million)
			for i := range keys {
				keys[i].Key, keys[i].Value = benchKey(i), schema.Value(benchValue)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if snapshotted && i%10_000 == 0 {
					d.Snapshot()
				}
				call.Input = &keys[i%million]
				result, err := d.Decide(call)
				if err != nil {
					b.Fatal(err)
				}
				call.Data = result.Data
				d.Apply(call)
				i++
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	d := filled(b)
	cursor := "bench/0500000"
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.MemoryList.Syscall, Input: &schema.MemoryListInput{Cursor: &cursor}}, Decision: kernel.Decision{Origin: home}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decide(call); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnapshot measures how long the state is blocked, and how long writing takes.
func BenchmarkSnapshot(b *testing.B) {
	d := filled(b)
	b.Run("take", func(b *testing.B) {
		for b.Loop() {
			d.Snapshot()
		}
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			n := 0
			if err := d.Snapshot()(func(chunk []byte) error {
				n += len(chunk)
				return nil
			}); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(n))
		}
	})
}

// BenchmarkRestore also reports the heap of a key.
func BenchmarkRestore(b *testing.B) {
	var all [][]byte
	if err := filled(b).Snapshot()(func(chunk []byte) error {
		all = append(all, chunk)
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	var d *memory.Domain
	for b.Loop() {
		d = newDomain(b, nil)
		for _, chunk := range all {
			if err := d.Restore(chunk); err != nil {
				b.Fatal(err)
			}
		}
	}
	with := heap()
	d.Reset()
	b.ReportMetric(float64(with-heap())/million, "heap-B/key")
}

// BenchmarkFill reports the heap of a key that was stored in random order.
func BenchmarkFill(b *testing.B) {
	var d *memory.Domain
	for b.Loop() {
		d = filled(b)
	}
	with := heap()
	d.Reset()
	b.ReportMetric(float64(with-heap())/million, "heap-B/key")
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkSetHot measures a Memory.Set in a small store: deciding and applying, without much searching.
func BenchmarkSetHot(b *testing.B) {
	d := newDomain(b, nil)
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.MemorySet.Syscall, Input: &schema.MemorySetInput{Key: "notes/1", Value: schema.Value(benchValue)}}, Decision: kernel.Decision{Origin: home}}
	b.ReportAllocs()
	for b.Loop() {
		result, err := d.Decide(call)
		if err != nil {
			b.Fatal(err)
		}
		call.Data = result.Data
		d.Apply(call)
	}
}
