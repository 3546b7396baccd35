package resource_test

import (
	"testing"

	"github.com/promptware-os/pwos/schema/fault"
)

func TestQuery(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ledger = newLedger(t, map[string]float64{"gpu": 8, "third": 0.3, "none": 0, "much": 1e21}, b.tokens)
	b.tokens.grant(1, map[string]float64{"gpu": 8, "third": 1, "none": 1, "much": 1e21})
	ask := func(of, want string) {
		t.Helper()
		b.must(2, "Syscall.Query", `{"resource_id":"`+of+`"}`, want)
	}
	ask("gpu", `{"available":8,"capacity":8,"utilization":0}`)
	ask("none", `{"available":0,"capacity":0,"utilization":0}`)
	b.alloc(1, "gpu", "2")
	ask("gpu", `{"available":6,"capacity":8,"utilization":0.25}`)
	b.alloc(1, "gpu", "6")
	ask("gpu", `{"available":0,"capacity":8,"utilization":1}`)
	b.alloc(1, "third", "0.1")
	ask("third", `{"available":0.2,"capacity":0.3,"utilization":0.3333333333333333}`)
	b.alloc(1, "none", "0")
	ask("none", `{"available":0,"capacity":0,"utilization":0}`)
	b.alloc(1, "much", "0.000001")
	ask("much", `{"available":999999999999999999999.999999,"capacity":1000000000000000000000,"utilization":0.000000000000000000000000001}`)
	b.refused(2, "Syscall.Query", `{"resource_id":"gpux"}`, fault.NotFound, `no resource is named "gpux": there are gpu, much, none, third`)
}
