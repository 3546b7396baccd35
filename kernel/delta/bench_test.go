package delta_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/delta"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
)

// long is the number of deltas in the memories of the benchmarks.
const long = 100_000

// committing returns calls that each change two of a thousand members and one of ten sums.
func committing() []kernel.Call {
	calls := make([]kernel.Call, 1000)
	for i := range calls {
		in := &schema.CommitDeltaInput{
			Changes: map[string]schema.Value{
				fmt.Sprintf("k%03d", i):           schema.Value(fmt.Sprintf(`{"n":%d,"at":"home"}`, i)),
				fmt.Sprintf("k%03d", (i+500)%999): schema.Value(`null`),
			},
			ResourceChanges: map[string]float64{fmt.Sprint("r", i%10): 0.5},
		}
		calls[i] = kernel.Call{Request: kernel.Request{Syscall: schema.SyscallCommitDelta.Syscall, Input: in}, Decision: kernel.Decision{PID: 1, Origin: home}}
	}
	return calls
}

func remembering(b *testing.B, n int) *delta.Domain {
	b.Helper()
	d := delta.New(domaintest.Table{process(1, "ada", home)})
	calls := committing()
	for i := range n {
		commitOne(b, d, &calls[i%len(calls)], int64(i))
	}
	return d
}

func commitOne(b *testing.B, d *delta.Domain, call *kernel.Call, tick int64) {
	call.Tick = tick
	result, err := d.Decide(call)
	if err != nil {
		b.Fatal(err)
	}
	call.Data = result.Data
	d.Apply(call)
}

// answer answers a query, and returns the time that it took the actor.
func answer(b *testing.B, d *delta.Domain, call *kernel.Call) time.Duration {
	b.Helper()
	begun := time.Now()
	result, err := d.Decide(call)
	took := time.Since(begun)
	if err == nil && result.Read != nil {
		_, err = result.Read(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return took
}

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{0, long} {
		b.Run(fmt.Sprintf("on %d", n), func(b *testing.B) {
			d, calls := remembering(b, n), committing()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				commitOne(b, d, &calls[i%len(calls)], int64(n+i))
				i++
			}
		})
	}
}

func BenchmarkGetState(b *testing.B) {
	d := remembering(b, long)
	early, middle := int64(long/100), int64(long/2+3000)
	for name, tick := range map[string]*int64{"now": nil, "early": &early, "middle": &middle} {
		b.Run(name, func(b *testing.B) {
			call := &kernel.Call{Request: kernel.Request{Syscall: schema.SyscallGetState.Syscall, Input: &schema.GetStateInput{AtTick: tick}}, Decision: kernel.Decision{PID: 1, Origin: home}}
			answer(b, d, call)
			var actor time.Duration
			for b.Loop() {
				actor += answer(b, d, call)
			}
			b.ReportMetric(float64(actor.Nanoseconds())/float64(b.N), "actor-ns/op")
		})
	}
}

// BenchmarkRollback drops one delta and commits another: the worst case.
func BenchmarkRollback(b *testing.B) {
	d, calls := remembering(b, long), committing()
	drop := &kernel.Call{Request: kernel.Request{Syscall: schema.DeltaDrop.Syscall, Input: &schema.DeltaDropInput{AgentID: "ada", ToTick: long - 1}}, Decision: kernel.Decision{Origin: home}}
	for b.Loop() {
		commitOne(b, d, &calls[0], long)
		d.Apply(drop)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	d := remembering(b, long)
	for b.Loop() {
		if err := d.Snapshot()(func(chunk []byte) error {
			b.SetBytes(int64(len(chunk)))
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRestore restores long deltas, and folds them for the first answer.
func BenchmarkRestore(b *testing.B) {
	var chunks [][]byte
	if err := remembering(b, long).Snapshot()(func(chunk []byte) error {
		chunks = append(chunks, chunk)
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	for _, answering := range []bool{false, true} {
		b.Run(fmt.Sprintf("answering %v", answering), func(b *testing.B) {
			for b.Loop() {
				d := delta.New(domaintest.Table{process(1, "ada", home)})
				for _, chunk := range chunks {
					if err := d.Restore(chunk); err != nil {
						b.Fatal(err)
					}
				}
				if !answering {
					continue
				}
				_ = answer(b, d, &kernel.Call{Request: kernel.Request{Syscall: schema.SyscallGetState.Syscall, Input: &schema.GetStateInput{}}, Decision: kernel.Decision{PID: 1, Origin: home}})
			}
		})
	}
}
