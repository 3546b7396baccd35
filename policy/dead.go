package policy

import (
	"math"
	"reflect"
	"slices"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// contradicts reports whether the conditions of a valid rule exclude each other, for each of its actions. It uses the
// constants that expressions are compared with. False means that the rule may match.
func contradicts(p *ast.Policy) bool {
	actions := scoped(p)
	if _, all := p.Action.(ast.ScopeTypeAll); all {
		actions = append(actions, types.NewEntityUID(syscallAction, "")) // actions that the rule does not name
		for uid := range named(p) {
			actions = append(actions, uid)
		}
	}
	return !slices.ContainsFunc(actions, func(action types.EntityUID) bool { return satisfiable(p, action) })
}

// maxSteps bounds the work for a rule.
const maxSteps = 10_000

// satisfiable reports whether the rule may match a call of the action.
func satisfiable(p *ast.Policy, action types.EntityUID) bool {
	facts := []fact{equal(variable("action"), action)}
	for _, a := range contextAttributes {
		if a.values != nil {
			facts = append(facts, oneOf(contextMember(types.String(a.name)), texts(a.values)...))
		}
	}
	if one, ok := p.Principal.(ast.ScopeTypeEq); ok {
		facts = append(facts, equal(variable("principal"), one.Entity))
	}
	if one, ok := p.Resource.(ast.ScopeTypeEq); ok {
		facts = append(facts, equal(variable("resource"), one.Entity))
	}
	if s := shapeNamed(action); s != nil {
		for i := range s.members {
			if m := &s.members[i]; m.bound != nil {
				facts = append(facts, m.bound(ast.NodeTypeAccess{StrOpNode: ast.StrOpNode{Arg: contextMember("args"), Value: types.String(m.name)}}))
			}
		}
	}
	var goals []goal
	for _, c := range slices.Backward(p.Conditions) {
		goals = append(goals, goal{c.Body, c.Condition == ast.ConditionWhen})
	}
	s := &search{left: maxSteps}
	return s.reach(goals, facts)
}

func variable(name types.String) ast.IsNode { return ast.NodeTypeVariable{Name: name} }

func contextMember(name types.String) ast.IsNode {
	return ast.NodeTypeAccess{StrOpNode: ast.StrOpNode{Arg: variable("context"), Value: name}}
}

// goal is a condition that must be true or false.
type goal struct {
	of   ast.IsNode
	want bool
}

// fact is what is known about the value of an expression.
type fact struct {
	of   ast.IsNode
	fits func(types.Value) bool
	// among are test values: several facts can hold together if one of these values fits all of them. Without test values,
	// nothing is decided.
	among []types.Value
	all   bool // there are no other values, whatever else is known
}

func equal(of ast.IsNode, v types.Value) fact { return oneOf(of, v) }

func oneOf(of ast.IsNode, list ...types.Value) fact {
	return fact{of: of, fits: func(v types.Value) bool { return slices.ContainsFunc(list, v.Equal) }, among: list, all: true}
}

func noneOf(of ast.IsNode, list ...types.Value) fact {
	f := fact{of: of, fits: func(v types.Value) bool { return !slices.ContainsFunc(list, v.Equal) }}
	for _, v := range list {
		if n, ok := v.(types.Long); ok {
			f.among = append(f.among, around(n)...)
		}
	}
	return f
}

func within(of ast.IsNode, least, most types.Long) fact {
	return fact{of: of, among: append(around(least), around(most)...), fits: func(v types.Value) bool {
		n, ok := v.(types.Long)
		return ok && least <= n && n <= most
	}}
}

// around returns n and its neighbours. All other numbers on the same side compare with n as they do.
func around(n types.Long) []types.Value {
	list := []types.Value{n}
	if n > math.MinInt64 {
		list = append(list, n-1)
	}
	if n < math.MaxInt64 {
		list = append(list, n+1)
	}
	return list
}

func texts(list []string) []types.Value {
	values := make([]types.Value, len(list))
	for i, s := range list {
		values[i] = types.String(s)
	}
	return values
}

// search searches for a way to satisfy goals.
type search struct{ left int }

// reach reports whether all goals may be satisfied while the facts hold.
func (s *search) reach(goals []goal, facts []fact) bool {
	if s.left--; s.left < 0 || len(goals) == 0 {
		return true
	}
	last := len(goals) - 1
	g, rest := goals[last], goals[:last:last]
	then := func(more ...goal) bool { return s.reach(append(rest, more...), facts) }
	switch n := g.of.(type) {
	case ast.NodeValue:
		return n.Value == types.Boolean(g.want) && then()
	case ast.NodeTypeNot:
		return then(goal{n.Arg, !g.want})
	case ast.NodeTypeAnd:
		if g.want {
			return then(goal{n.Right, true}, goal{n.Left, true})
		}
		return then(goal{n.Left, false}) || then(goal{n.Right, false}, goal{n.Left, true})
	case ast.NodeTypeOr:
		if !g.want {
			return then(goal{n.Right, false}, goal{n.Left, false})
		}
		return then(goal{n.Left, true}) || then(goal{n.Right, true}, goal{n.Left, false})
	case ast.NodeTypeIfThenElse:
		return then(goal{n.Then, g.want}, goal{n.If, true}) || then(goal{n.Else, g.want}, goal{n.If, false})
	}
	learned := g.fact()
	facts = append(facts[:len(facts):len(facts)], learned)
	return consistent(facts, learned.of) && s.reach(rest, facts)
}

// consistent reports whether the facts about an expression may all hold.
func consistent(facts []fact, of ast.IsNode) bool {
	var about []fact
	for _, f := range facts {
		if reflect.DeepEqual(f.of, of) {
			about = append(about, f)
		}
	}
	var among []types.Value
	all := slices.IndexFunc(about, func(f fact) bool { return f.all })
	switch {
	case all >= 0:
		among = about[all].among
	case slices.ContainsFunc(about, func(f fact) bool { return len(f.among) == 0 }):
		return true
	default:
		for _, f := range about {
			among = append(among, f.among...)
		}
	}
	return slices.ContainsFunc(among, func(v types.Value) bool {
		return !slices.ContainsFunc(about, func(f fact) bool { return !f.fits(v) })
	})
}

// fact returns the fact that a goal requires, if the goal is not a combination of others.
func (g goal) fact() fact {
	is := func(of ast.IsNode, want bool, list []types.Value) fact {
		if want {
			return oneOf(of, list...)
		}
		return noneOf(of, list...)
	}
	switch n := g.of.(type) {
	case ast.NodeTypeEquals:
		if of, v := compared(n.Left, n.Right); of != nil {
			return is(of, g.want, []types.Value{v})
		}
	case ast.NodeTypeNotEquals:
		if of, v := compared(n.Left, n.Right); of != nil {
			return is(of, !g.want, []types.Value{v})
		}
	case ast.NodeTypeIn: // everything is in itself; actions and origins are in nothing else
		if list := constants(n.Right); list != nil && (!g.want || isVariable(n.Left, "action") || isVariable(n.Left, "resource")) {
			return is(n.Left, g.want, list)
		}
	case ast.NodeTypeContains:
		if list := constants(n.Left); list != nil {
			return is(n.Right, g.want, list)
		}
	case ast.NodeTypeLike:
		return fact{of: n.Arg, fits: func(v types.Value) bool {
			text, ok := v.(types.String)
			return ok && n.Value.Match(text) == g.want
		}}
	case ast.NodeTypeLessThan:
		return g.order(n.Left, n.Right, g.want)
	case ast.NodeTypeGreaterThan:
		return g.order(n.Right, n.Left, g.want)
	case ast.NodeTypeLessThanOrEqual:
		return g.order(n.Right, n.Left, !g.want)
	case ast.NodeTypeGreaterThanOrEqual:
		return g.order(n.Left, n.Right, !g.want)
	}
	return equal(g.of, types.Boolean(g.want))
}

// order returns the fact that less < more, or its negation if want is false.
func (g goal) order(less, more ast.IsNode, want bool) fact {
	of, v := compared(less, more)
	n, ok := v.(types.Long)
	below := reflect.DeepEqual(of, less)
	switch {
	case !ok:
	case below && want && n > math.MinInt64:
		return within(of, math.MinInt64, n-1)
	case below && !want:
		return within(of, n, math.MaxInt64)
	case !below && want && n < math.MaxInt64:
		return within(of, n+1, math.MaxInt64)
	case !below && !want:
		return within(of, math.MinInt64, n)
	}
	return equal(g.of, types.Boolean(g.want))
}

// compared returns the expression and the constant that it is compared with; nil if neither side is
// constant.
func compared(left, right ast.IsNode) (of ast.IsNode, v types.Value) {
	l, leftIs := left.(ast.NodeValue)
	r, rightIs := right.(ast.NodeValue)
	switch {
	case leftIs == rightIs:
		return nil, nil
	case leftIs:
		return right, l.Value
	}
	return left, r.Value
}

// constants returns the values of a node that is a constant or a set of constants; nil for any other
// node.
func constants(n ast.IsNode) (list []types.Value) {
	switch n := n.(type) {
	case ast.NodeValue:
		if set, ok := n.Value.(types.Set); ok {
			return slices.Collect(set.All())
		}
		return []types.Value{n.Value}
	case ast.NodeTypeSet:
		for _, e := range n.Elements {
			v, ok := e.(ast.NodeValue)
			if !ok {
				return nil
			}
			list = append(list, v.Value)
		}
	}
	return list
}
