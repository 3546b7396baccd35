package resource_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// decide runs Decide and Apply only.
func (b *bench) decide(t testing.TB, call *kernel.Call) {
	result, err := b.ledger.Decide(call)
	testkit.Must(t, err)
	if call.Data = result.Data; call.Syscall.Kind == schema.KindCommand {
		b.ledger.Apply(call)
	}
}

// BenchmarkAllocRelease runs pairs: the state is the same after each.
func BenchmarkAllocRelease(b *testing.B) {
	for _, amount := range []string{"1", "0.1"} {
		b.Run(amount, func(b *testing.B) {
			s := filled(b, 10_000)
			data := fmt.Sprintf(`{"resource_id":"gpu","amount":%s}`, amount)
			alloc, release := request(b, 77, "Syscall.Alloc", data), request(b, 77, "Syscall.Release", data)
			alloc.Token = s.tokens[77]
			b.ReportAllocs()
			for b.Loop() {
				s.decide(b, alloc)
				s.decide(b, release)
			}
		})
	}
}

func BenchmarkQuery(b *testing.B) {
	s := filled(b, 10_000)
	call := request(b, 77, "Syscall.Query", `{"resource_id":"cpu"}`)
	b.ReportAllocs()
	for b.Loop() {
		s.decide(b, call)
	}
}

func BenchmarkCheck(b *testing.B) {
	s := filled(b, 10_000)
	call := request(b, 0, "Capability.Check", `{"pid":77,"syscall":"SYS_ALLOC","resource_id":"gpu","amount":1}`)
	b.ReportAllocs()
	for b.Loop() {
		s.decide(b, call)
	}
}

// BenchmarkSnapshot measures how long the domain is stopped, without the writing.
func BenchmarkSnapshot(b *testing.B) {
	s := filled(b, 10_000)
	for b.Loop() {
		s.ledger.Snapshot()
	}
}
