package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/policy"
)

// randomRules generates rules about a few calls with conditions about a few values.
type randomRules struct{ *rand.Rand }

func (r randomRules) pick(of ...string) string { return of[r.IntN(len(of))] }

func (r randomRules) atom(typ string) string {
	general := []string{
		`context.via == "` + r.pick("job", "socket", "mcp") + `"`, `principal == Agent::"` + r.pick("lead", "worker") + `"`,
		`principal in Agent::"lead"`, "principal has key", "context.tick " + r.pick("<", ">=", "==") + " " + r.pick("2", "3"),
		`resource ` + r.pick("==", "in", "!=") + ` Origin::"` + r.pick("os:///", "elsewhere") + `"`,
		`action == Syscall::"` + r.pick("Memory.Set", "Memory.List", "Clock.Advance") + `"`,
		`[Syscall::"Memory.Set", Syscall::"Memory.List"].contains(action)`, r.pick("true", "1 == 1"),
	}
	if r.IntN(3) == 0 {
		return r.pick(general...)
	}
	compare := r.pick("<", "<=", ">", ">=", "==", "!=") + " " + r.pick("1", "2", "3")
	switch typ {
	case "Memory.Set":
		return r.pick(`context.args.key == "`+r.pick("a", "b/1")+`"`, `context.args.key like "`+r.pick("a*", "b*", "*1")+`"`, `context.args.value != "`+r.pick("1", "2")+`"`,
			`["a", "b/1"].contains(context.args.key)`)
	case "Memory.List":
		return r.pick(`context.args has limit`, `(context.args has limit && context.args.limit `+compare+`)`, `(context.args has prefix && context.args.prefix == "`+r.pick("a", "b")+`")`)
	}
	return r.pick("context.args.ticks "+compare, r.pick("1", "2")+" "+r.pick("<", ">")+" context.args.ticks")
}

func (r randomRules) condition(typ string, depth int) string {
	if depth == 0 || r.IntN(4) == 0 {
		return r.atom(typ)
	}
	one, other := r.condition(typ, depth-1), r.condition(typ, depth-1)
	switch r.IntN(6) {
	case 0:
		return "!(" + one + ")"
	case 1, 2:
		return "(" + one + " || " + other + ")"
	case 3:
		return "(if " + one + " then " + other + " else " + r.condition(typ, depth-1) + ")"
	}
	return "(" + one + " && " + other + ")"
}

// rule returns a rule of the syscall typ, and the inverse rule.
func (r randomRules) rule(typ, before string) (rule, inverse string) {
	scope, one, other := r.pick("", `== Agent::"lead"`, `in Agent::"lead"`), r.condition(typ, 2), r.condition(typ, 2)
	const format = "%sforbid(principal %s, action == Syscall::%q, resource) %s { %s } %s { %s };\n"
	second := r.pick("when", "unless")
	rule = fmt.Sprintf(format, before, scope, typ, "when", one, second, other)
	both := fmt.Sprintf("(%s) && %s(%s)", one, map[string]string{"unless": "!"}[second], other)
	if scope != "" {
		both = "principal " + scope + " && " + both
	}
	return rule, fmt.Sprintf("forbid(principal, action == Syscall::%q, resource) unless { %s };", typ, both)
}

// callData returns data of calls for which such rules differ.
func callData(typ string) (list []string) {
	switch typ {
	case "Memory.Set":
		for _, key := range []string{"a", "/a", "a1", "b/1", "/b/1", "c", "1"} {
			for _, value := range []string{"1", "2", `"1"`} {
				list = append(list, fmt.Sprintf(`{"key":%q,"value":%s}`, key, value))
			}
		}
	case "Memory.List":
		for _, limit := range []string{"", `"limit":1,`, `"limit":2,`, `"limit":3,`, `"limit":4,`} {
			for _, prefix := range []string{"", `"prefix":"a",`, `"prefix":"b",`, `"prefix":"c",`} {
				list = append(list, "{"+strings.TrimSuffix(limit+prefix, ",")+"}")
			}
		}
	default:
		list = []string{`{"ticks":1}`, `{"ticks":2}`, `{"ticks":3}`, `{"ticks":4}`}
	}
	return list
}

// TestDead: with random rules, no rule that matches some call is refused as one that never matches. Most rules that match
// none of these calls are refused, except for those that need other agents, and two patterns.
func TestDead(t *testing.T) {
	t.Parallel()
	r := randomRules{rand.New(rand.NewPCG(4, 1))}
	dead, found := 0, 0
	for range testkit.Rounds(300, 300, 1000) {
		typ := r.pick("Memory.Set", "Memory.List", "Clock.Advance")
		rule, inverse := r.rule(typ, "")
		set, problems := policy.Compile([]policy.File{{Name: "policy.cedar", Text: []byte(rule)}})
		if set == nil && !strings.Contains(fmt.Sprint(problems), "can never match") {
			t.Fatalf("%s%v", rule, problems)
		}
		matched := matchedBy(t, typ, set, inverse)
		switch {
		case matched != "" && set == nil:
			t.Errorf("%srefused: %v, and it matches %s", rule, problems, matched)
		case matched == "" && set == nil:
			found++
			dead++
		case matched == "":
			dead++
		}
	}
	t.Logf("%d of %d rules that match nothing were found", found, dead)
	if found*4 < dead*3 {
		t.Error("these are too few")
	}
}

// matchedBy describes a call that a rule matches and its inverse does not; "": there is none. A nil rule was refused.
func matchedBy(t *testing.T, typ string, rule *policy.Set, inverse string) string {
	t.Helper()
	want := rule != nil
	if rule == nil {
		rule = compile(t, inverse) // it matches if the rule does not
	}
	j := judge(rule)
	for _, data := range callData(typ) {
		for _, via := range []string{"socket", "channel", "job", "mcp"} {
			for pid := range world {
				for _, origin := range []string{"os:///", "elsewhere", "nowhere"} {
					for tick := range int64(4) {
						c := call(t, pid, typ, data)
						c.Caller.Via, c.Origin, c.Tick = via, origin, tick+1
						if d := j.Decide(c); d.Failed != nil {
							t.Fatalf("%s: %v", inverse, d.Failed)
						} else if (d.Rule != nil) == want {
							return fmt.Sprintf("pid %d, %s %s by %s of %s at %d", pid, typ, data, via, origin, c.Tick)
						}
					}
				}
			}
		}
	}
	return ""
}
