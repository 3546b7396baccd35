package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cedar-policy/cedar-go"
	publicast "github.com/cedar-policy/cedar-go/ast"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/promptware-os/pwos/schema"
)

// Rule is one rule.
type Rule struct {
	ID   string        // its @id, otherwise the file and the rule's number in it
	Fix  string        // its @fix: advice for a refused caller; may be empty
	Ask  time.Duration // its @ask: the time in which the question can be answered; 0: the rule forbids
	File string
	Line int

	policy *cedar.Policy
	tree   *ast.Policy
	needs  []string // members of args that it reads, and members of context with a leading dot
}

// At returns where the rule is defined, as FILE:LINE.
func (r *Rule) At() string { return r.File + ":" + strconv.Itoa(r.Line) }

// Problem is an error or a warning about a file of rules.
type Problem struct {
	File    string
	Line    int // 0: the whole file
	Text    string
	Warning bool // the rules can still be loaded
}

// String formats the problem in one line, as FILE:LINE: text.
func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at += ":" + strconv.Itoa(p.Line)
	}
	if p.Warning {
		return at + ": warning: " + p.Text
	}
	return at + ": " + p.Text
}

// Set has all loaded rules. It is immutable; a nil Set has none.
type Set struct {
	Hash  string   // SHA-256 over the names and the contents of the files, in order
	Files []string // their names
	Rules []*Rule  // in the order of the files

	byAction map[types.EntityUID]*applicable
	others   *applicable // for tools and registered syscalls that no rule names
	programs *applicable // for programs that no rule names
	executes *Rule       // the first rule about programs; nil: none
}

// applicable has the rules that can match an action.
type applicable struct {
	rules []*Rule
	needs map[string]bool // members of args that at least one of the rules reads
}

// All implements cedar.PolicyIterator.
func (a *applicable) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, r := range a.rules {
			if !yield(cedar.PolicyID(r.ID), r.policy) {
				return
			}
		}
	}
}

// Compile compiles files to a Set. The problems are in the order of the files. If one of them is not a warning, or there
// are no files, the Set is nil.
func Compile(files []File) (*Set, []Problem) {
	if len(files) == 0 {
		return nil, nil
	}
	s, hash := &Set{}, sha256.New()
	var problems []Problem
	ids := make(map[string]*Rule)
	for _, f := range files {
		fmt.Fprintf(hash, "%d %s %d ", len(f.Name), f.Name, len(f.Text))
		hash.Write(f.Text)
		s.Files = append(s.Files, f.Name)
		list, err := cedar.NewPolicyListFromBytes(f.Name, f.Text)
		if err != nil {
			problems = append(problems, unparsed(f.Name, err))
			continue
		}
		for i, p := range list {
			r, wrong := ruleOf(p, f.Name, i+1)
			if other := ids[r.ID]; other != nil {
				wrong = append(wrong, fmt.Sprintf("the rule at %s has the same name, %q", other.At(), r.ID))
			}
			ids[r.ID] = r
			for _, text := range wrong {
				problems = append(problems, Problem{File: f.Name, Line: r.Line, Text: text})
			}
			s.Rules = append(s.Rules, r)
		}
	}
	s.Hash = hex.EncodeToString(hash.Sum(nil))
	problems = append(problems, newChecker(s.Rules).check()...)
	order := func(file string) int { return slices.Index(s.Files, file) }
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(order(a.File), order(b.File)), cmp.Compare(a.Line, b.Line))
	})
	if slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning }) {
		return nil, problems
	}
	s.index()
	return s, problems
}

var position = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:(\d+):\d+`) })

// unparsed returns the problem for a text that is not Cedar.
func unparsed(file string, err error) Problem {
	p := Problem{File: file, Text: err.Error()}
	if at := position().FindStringSubmatch(err.Error()); at != nil {
		p.Line, _ = strconv.Atoi(at[1]) // digits, by the pattern
	}
	return p
}

// longestAsk bounds @ask.
const longestAsk = 7 * 24 * time.Hour

// ruleOf reads the annotations of the nth rule of a file.
func ruleOf(p *cedar.Policy, file string, n int) (*Rule, []string) {
	r := &Rule{ID: file + "#" + strconv.Itoa(n), File: file, Line: p.Position().Line, policy: p, tree: (*ast.Policy)(p.AST())}
	var wrong []string
	if p.Effect() != cedar.Forbid {
		wrong = append(wrong, "permit is not used here: tokens permit, and rules only forbid; write a forbid rule")
	}
	for _, a := range r.tree.Annotations {
		switch value := string(a.Value); a.Key {
		case "id":
			r.ID = value
			if value == "" || len(value) > 128 || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' }) {
				wrong = append(wrong, "@id must be a name of at most 128 bytes")
			}
		case "fix":
			r.Fix = value
			if value == "" || len(value) > 1024 {
				wrong = append(wrong, "@fix must be a text of at most 1024 bytes")
			}
		case "ask":
			d, err := time.ParseDuration(value)
			if err != nil || d <= 0 || d > longestAsk {
				wrong = append(wrong, fmt.Sprintf("@ask(%q) must be the time in which the question can be answered, such as 30m", value))
			}
			r.Ask = d
		default:
			wrong = append(wrong, fmt.Sprintf("@%s has no meaning here: use @id, @ask or @fix", a.Key))
		}
	}
	needs, err := needsOf(r.tree)
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	r.needs = needs
	body := *r.tree
	body.Action = ast.ScopeTypeAll{} // the rule is only evaluated for actions that match
	r.policy = cedar.NewPolicyFromAST((*publicast.Policy)(&body))
	return r, wrong
}

// needsOf returns the members of args that a rule reads. A rule must name them, so that only those are computed.
func needsOf(p *ast.Policy) (needs []string, err error) {
	for _, c := range p.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			arg, name, ok := attribute(n)
			switch {
			case ok && isArgs(arg):
				needs = append(needs, string(name))
				return false
			case isArgs(n):
				err = errors.New("a rule must name members of context.args, such as context.args.key, instead of the whole of it")
			case ok && isVariable(arg, "context"):
				needs = append(needs, "."+string(name))
				return false
			case isVariable(n, "context"):
				err = errors.New("a rule must name members of context, such as context.tick, instead of the whole of it")
			}
			return err == nil
		})
	}
	slices.Sort(needs)
	return slices.Compact(needs), err
}

// attribute returns the member that n accesses, or tests for, and its object.
func attribute(n ast.IsNode) (arg ast.IsNode, name types.String, ok bool) {
	switch n := n.(type) {
	case ast.NodeTypeAccess:
		return n.Arg, n.Value, true
	case ast.NodeTypeHas:
		return n.Arg, n.Value, true
	}
	return nil, "", false
}

func isArgs(n ast.IsNode) bool {
	access, ok := n.(ast.NodeTypeAccess)
	return ok && access.Value == "args" && isVariable(access.Arg, "context")
}

func isVariable(n ast.IsNode, name types.String) bool {
	v, ok := n.(ast.NodeTypeVariable)
	return ok && v.Name == name
}

// Entity types of actions.
const (
	syscallAction types.EntityType = "Syscall"
	toolAction    types.EntityType = "Tool"
	programAction types.EntityType = "Program"
)

// index finds for each action the rules that can match it.
func (s *Set) index() {
	s.byAction = make(map[types.EntityUID]*applicable)
	for _, row := range schema.Syscalls() {
		if judged(row) {
			s.byAction[types.NewEntityUID(syscallAction, types.String(row.Type))] = nil
		}
	}
	for _, r := range s.Rules {
		for _, uid := range scoped(r.tree) {
			s.byAction[uid] = nil
			if s.executes == nil && uid.Type == programAction {
				s.executes = r
			}
		}
	}
	for uid := range s.byAction {
		s.byAction[uid] = s.matching(uid)
	}
	s.others, s.programs = s.matching(types.NewEntityUID(toolAction, "")), s.matching(everyProgram)
}

// everyProgram is the action of a rule for programs with any name.
var everyProgram = types.NewEntityUID(programAction, "*")

// matching returns the rules that name an action, and those for every action. These are about calls: what is executed must be named.
func (s *Set) matching(uid types.EntityUID) *applicable {
	a := &applicable{needs: make(map[string]bool)}
	for _, r := range s.Rules {
		_, all := r.tree.Action.(ast.ScopeTypeAll)
		if uid.Type == programAction {
			all = slices.Contains(scoped(r.tree), everyProgram)
		}
		if all || slices.Contains(scoped(r.tree), uid) {
			a.rules = append(a.rules, r)
			for _, name := range r.needs {
				a.needs[name] = true
			}
		}
	}
	return a
}

// scoped returns the actions in the head of a rule.
func scoped(p *ast.Policy) []types.EntityUID {
	switch scope := p.Action.(type) {
	case ast.ScopeTypeEq:
		return []types.EntityUID{scope.Entity}
	case ast.ScopeTypeIn:
		return []types.EntityUID{scope.Entity}
	case ast.ScopeTypeInSet:
		return scope.Entities
	}
	return nil
}
