package confine

import "golang.org/x/sys/unix"

// WithHome is withHome.
var WithHome = withHome

// Sources returns what of the machine stands at the paths of the plan.
func (p *Plan) Sources() map[string]string {
	all := make(map[string]string)
	for _, l := range p.layers {
		if l.kind == bindMount {
			all[l.path] = l.source
		}
	}
	return all
}

// Ruleset is what Landlock is asked to control.
func (p *Plan) Ruleset() unix.LandlockRulesetAttr { return p.ruleset() }

// Numbers returns the numbers of the calls that a filter checks, on amd64 and on arm64, below 0 where there is none.
func (r Rules) Numbers() (list [][2]int) {
	for _, row := range r.rows() {
		list = append(list, [2]int{row.amd64, row.arm64})
	}
	return list
}

// The ways to find the process of a thread, and its parent.
var (
	Family       = family
	FamilyInProc = familyInProc
)
