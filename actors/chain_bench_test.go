package actors

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// BenchmarkChain measures the cost of a call without sockets, queues, the journal's hash and the disk: it is decoded,
// admitted, decided, applied, counted, written as an entry and answered, in batches of 64 calls.
func BenchmarkChain(b *testing.B) {
	const outstanding = 64
	value := `"` + strings.Repeat("x", 100) + `"`
	set := func(i int) string {
		return fmt.Sprintf(`{"kind":"command","type":"Memory.Set","data":{"key":"/bench/%d","value":%s},"metadata":{"id":"%d","timestamp":1735000000000}}`, i, value, i)
	}
	for _, c := range []struct {
		name string
		line func(i int) string
	}{
		{"Set", set},
		{"Get", func(i int) string {
			return fmt.Sprintf(`{"kind":"query","type":"Memory.Get","data":{"key":"/bench/%d"},"metadata":{"id":"%d","timestamp":1735000000000}}`, i, i)
		}},
		{"Ping", func(i int) string {
			return fmt.Sprintf(`{"kind":"query","type":"Syscall.Ping","data":{"payload":%d},"metadata":{"id":"%d","timestamp":1735000000000}}`, i, i)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			chain := newChain(b)
			var burst, sets [][]byte
			for i := range outstanding {
				burst, sets = append(burst, []byte(c.line(i))), append(sets, []byte(set(i)))
			}
			chain.run(b, sets) // so that the keys to read exist
			if out := chain.run(b, burst); bytes.Count(out, []byte(`"reply"`)) != outstanding {
				b.Fatalf("not every call has a reply:\n%s", out)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += outstanding {
				chain.run(b, burst)
			}
		})
	}
}

// chain has the stages of a call, without the actors.
type chain struct {
	gate    kernel.Gate
	domains map[schema.Domain]kernel.Domain
	keys    *idempotency.Keys
	metrics *metrics.Metrics
	encoder record.Encoder
	stamps  *schema.Stamper
	calls   []kernel.Call
	out     []byte
	seq     uint64
}

func newChain(b *testing.B) *chain {
	b.Helper()
	processes := process.New(nil)
	tokens := capability.New(nil, processes.Processes())
	for _, d := range []kernel.Publisher{processes, tokens} {
		d.Publish()
	}
	store, err := memory.New(schema.Value(`{}`), processes.Processes())
	if err != nil {
		b.Fatal(err)
	}
	tick := newClock(0, 0)
	authority := kernel.Authority{
		Tokens: tokens, Processes: processes.Processes(), Origin: "https://bench.local/",
		ReadOrigin: func(origin string) (string, error) { return origin, nil }, Now: tick.now, Reach: tick.reach,
	}
	return &chain{
		gate: kernel.Gate{
			Bounds:   newAccounts(Bounds{InFlightBytes: 1 << 20, JournalBytesPerSecond: 1 << 20, JournalBurstBytes: 1 << 20}, nil).admit,
			Identity: authority.Identify, Token: authority.Authorize, Tick: kernel.NoFutureTick,
		},
		domains: map[schema.Domain]kernel.Domain{schema.Memory: store, schema.Kernel: self.New(nil)},
		keys:    idempotency.New(),
		metrics: metrics.New(),
		stamps:  schema.NewStamper(),
	}
}

// run processes a burst of lines, stage by stage, and returns the answers.
func (c *chain) run(b *testing.B, burst [][]byte) []byte {
	now := time.Now()
	c.out = c.out[:0]
	clear(c.calls)
	c.calls = c.calls[:0]
	for _, line := range burst {
		c.calls = append(c.calls, kernel.Call{})
		call := &c.calls[len(c.calls)-1]
		call.Message, call.Err = schema.Decode(line, schema.OsMessage)
		if call.Err == nil {
			call.Syscall, call.Input, call.Err = call.Message.Request()
		}
		if call.Err != nil {
			b.Fatal(call.Err)
		}
	}
	for i := range c.calls {
		call := &c.calls[i]
		call.Time = now.UnixMilli()
		if v := c.gate.Admit(call); !v.Allows() {
			b.Fatal(v.Fault)
		}
		if _, err := c.keys.Claim(call); err != nil {
			b.Fatal(err)
		}
		domain := c.domains[call.Syscall.Domain]
		result, err := domain.Decide(call)
		if err != nil {
			b.Fatal(err)
		}
		call.Data = result.Data
		c.keys.Record(call)
		if call.Syscall.Kind == schema.KindCommand {
			domain.Apply(call)
		}
	}
	for i := range c.calls {
		call := &c.calls[i]
		c.metrics.Count(call, 1)
		c.encoder.Entry(call, 0)
		c.seq++
		c.keys.Number(call, c.seq)
		call.Proof = schema.Proof{Seq: c.seq, PID: call.PID, Tick: call.Tick}
	}
	for i := range c.calls {
		stamp := c.stamps.Next(now)
		stamp.Proof = c.calls[i].Proof
		c.out = schema.AppendReply(c.out, &c.calls[i].Message, c.calls[i].Data, &stamp)
	}
	return c.out
}
