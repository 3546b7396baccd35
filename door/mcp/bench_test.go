package mcp_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// BenchmarkCall compares the median latency of a tool call with that of the same syscall on a direct connection.
func BenchmarkCall(b *testing.B) {
	p := newPlace(b)
	h := connect(b, p.bridge("Memory.*"))
	c, err := p.dial(testkit.Context(b))
	testkit.Must(b, err)
	b.Cleanup(func() { testkit.Must(b, c.Close()) })
	for _, row := range []*schema.Syscall{schema.MemorySet.Row(), schema.MemoryGet.Row()} {
		arguments := args{"key": "a"}
		data := []byte(`{"key":"a"}`)
		if row.Type == "Memory.Set" {
			arguments["value"], data = 1, []byte(`{"key":"a","value":1}`)
		}
		for name, call := range map[string]func() error{
			"syscall": func() error {
				_, err := c.Call(b.Context(), row.Kind, row.Type, data)
				return err
			},
			"tool": func() error {
				_, err := h.session.CallTool(b.Context(), &sdk.CallToolParams{Name: fmt.Sprint(row.Type[:6], "_", row.Type[7:]), Arguments: arguments})
				return err
			},
		} {
			b.Run(row.Type+"/"+name, func(b *testing.B) {
				var times []time.Duration
				for b.Loop() {
					begun := time.Now()
					testkit.Must(b, call())
					times = append(times, time.Since(begun))
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			})
		}
	}
}
