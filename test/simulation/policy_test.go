package simulation_test

import (
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/test/authority/model"
)

// rules are the policy of the simulation. Most rules apply from tick 2 on.
const rules = `
@id("kept") forbid(principal, action in [Syscall::"Memory.Set", Syscall::"Memory.Delete", Syscall::"Memory.CompareAndSet"], resource)
when { context.args.key == "k0" && context.tick >= 2 };
@id("silent") forbid(principal, action == Syscall::"Syscall.SendMsg", resource)
when { context.args has intent && context.args.intent == "b" && context.tick >= 2 };
@id("asks") @ask("1h") forbid(principal, action in [Syscall::"Memory.Set", Syscall::"Memory.Delete", Syscall::"Memory.CompareAndSet"], resource)
when { context.args.key == "k1" || context.args.key == "k2" };
`

var ruleSet = func() *policy.Set {
	set, problems := policy.Compile([]policy.File{{Name: "policy.cedar", Text: []byte(rules)}})
	if len(problems) > 0 {
		panic(problems[0].String())
	}
	return set
}()

// guard returns the policy stage of a kernel.
func guard(processes kernel.Processes) kernel.Stage {
	g := policy.NewGuard(policy.Forms{}, processes, nil)
	g.Use(ruleSet)
	return g.Stage
}

// forbidden reports whether the policy denies a call made as who. It repeats the rules independently.
func forbidden(q *request, who, tick int64) bool {
	if who == model.Operator || tick < 2 {
		return false
	}
	return changes(q) && strings.Contains(q.frame, `"key":"k0"`) ||
		q.typ == "Syscall.SendMsg" && strings.Contains(q.frame, `"intent":"b"`)
}
