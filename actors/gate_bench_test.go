package actors_test

import (
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// BenchmarkGate measures the cost of a call before its domain decides it.
func BenchmarkGate(b *testing.B) {
	row, _ := schema.Lookup("Memory.Set")
	s := startWith(b, newRecorders().domains())
	s.tokens.held = map[int64]*kernel.Token{7: allowed(7, "*")}
	for _, caller := range []struct {
		name string
		pid  int64
	}{{"operator", kernel.Operator}, {"agent", 7}} {
		b.Run(caller.name, func(b *testing.B) {
			b.ReportAllocs()
			in := &schema.MemorySetInput{Key: "k", Value: schema.Value("1")}
			call := new(kernel.Call)
			for b.Loop() {
				*call = kernel.Call{Request: kernel.Request{Caller: kernel.Caller{PID: caller.pid, Conn: "c-1"}, Syscall: row, Input: in}}
				if !s.kernel.Admit(call) {
					b.Fatal("refused")
				}
			}
		})
	}
}
