package jsonschema

import (
	"slices"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Check returns the first part of a valid JSON value that does not match the schema, nil if the value matches.
func (s *Schema) Check(data []byte) *Misfit {
	if s.root == nil {
		return nil
	}
	v := read(data)
	c := check{left: 1<<18 + 4*len(data)}
	m := c.fits(s.root, &v, nil, nil)
	if c.left < 0 {
		return &Misfit{Why: "takes too long to check"}
	}
	return m.shown()
}

// check is the state of the check of one value.
type check struct{ left int } // steps left; less than 0: the check is aborted

// spent is the result of a check that is aborted.
var spent = &mismatch{}

// fits returns the part of v that does not match n, nil if v matches. If seen is not nil, it marks the children of v that n
// evaluates.
func (c *check) fits(n *node, v *value, at *place, seen []bool) *mismatch {
	if c.left -= 1 + len(n.required) + len(n.patterns); c.left < 0 {
		return spent
	}
	switch {
	case n.never:
		return at.is("is not allowed")
	case n.kinds != 0 && n.kinds&v.kind == 0:
		return at.is("must be %s", n.kinds)
	case n.values != nil && !c.among(n, v):
		return at.is("must be one of %s", fault.Clip(n.listed))
	}
	own, rest := seen, n.rest(v)
	if rest != nil {
		own = make([]bool, len(v.items))
		c.left -= len(own)
	}
	if m := c.combined(n, v, at, own); m != nil {
		return m
	}
	if m := c.inside(n, v, at, own); m != nil || rest == nil {
		return m
	}
	for i := range own {
		if own[i] {
			continue
		}
		if m := c.fits(rest, &v.items[i], at.child(v, i), nil); m != nil {
			return m
		}
		own[i] = true
	}
	mark(seen, own)
	return nil
}

// rest returns the schema of the children of v that no other keyword of n evaluates, nil if they may be any value.
func (n *node) rest(v *value) *node {
	switch v.kind {
	case object:
		return n.otherProperties
	case array:
		return n.otherItems
	}
	return nil
}

// mark adds the marks of more to seen.
func mark(seen, more []bool) {
	for i := range seen {
		seen[i] = seen[i] || more[i]
	}
}

// among reports whether v is one of n.values.
func (c *check) among(n *node, v *value) bool {
	c.left -= len(v.raw) / 16
	return n.values[string(v.canonical(nil))]
}

// inside checks the children of v.
func (c *check) inside(n *node, v *value, at *place, seen []bool) *mismatch {
	switch {
	case v.kind == object:
		return c.object(n, v, at, seen)
	case v.kind == array:
		return c.array(n, v, at, seen)
	case v.kind == text:
		return c.text(n, v, at)
	case v.kind&number != 0:
		return c.number(n, v, at)
	}
	return nil
}

// combined checks v against the schemas that n combines.
func (c *check) combined(n *node, v *value, at *place, seen []bool) *mismatch {
	for _, sub := range n.all {
		if m := c.fits(sub, v, at, seen); m != nil {
			return m
		}
	}
	if m := c.alternatives(n, v, at, seen); m != nil {
		return m
	}
	if n.not != nil && c.fits(n.not, v, at, nil) == nil {
		return at.is("must not fit what its schema excludes")
	}
	if n.when != nil {
		then := n.then
		if ok := c.branch(n.when, v, at, seen); ok != nil {
			then = n.or
		}
		if then != nil {
			if m := c.fits(then, v, at, seen); m != nil {
				return m
			}
		}
	}
	if v.kind != object {
		return nil
	}
	for i, name := range v.names {
		if sub := n.withMember[name]; sub != nil {
			if m := c.fits(sub, v, at, seen); m != nil {
				return m
			}
		}
		if m := c.present(v, at, n.withMemberNames[v.names[i]]); m != nil {
			return m
		}
	}
	return nil
}

// branch checks v against a schema that it need not match. The marks of the schema count only if v matches.
func (c *check) branch(n *node, v *value, at *place, seen []bool) *mismatch {
	if seen == nil {
		return c.fits(n, v, at, nil)
	}
	c.left -= len(seen)
	own := make([]bool, len(seen))
	m := c.fits(n, v, at, own)
	if m == nil {
		mark(seen, own)
	}
	return m
}

// alternatives checks v against anyOf and oneOf. If v matches no branch, it returns the mismatch of the
// closest one.
func (c *check) alternatives(n *node, v *value, at *place, seen []bool) *mismatch {
	var best *mismatch
	note := func(m *mismatch) {
		c.left -= 8 // the cost of the mismatch
		if best == nil || m.at.depth() > best.at.depth() {
			best = m
		}
	}
	fitting := 0
	for _, sub := range n.any {
		m := c.branch(sub, v, at, seen)
		if m != nil {
			note(m)
		} else if fitting++; seen == nil {
			break
		}
	}
	if len(n.any) > 0 && fitting == 0 {
		return best
	}
	best, fitting = nil, 0
	for _, sub := range n.one {
		if m := c.branch(sub, v, at, seen); m != nil {
			note(m)
		} else {
			fitting++
		}
	}
	switch {
	case len(n.one) == 0 || fitting == 1:
		return nil
	case fitting > 1:
		return at.is("must fit one of the alternatives of its schema, and fits %d", fitting)
	}
	return best
}

// present returns a mismatch if an object does not have all names.
func (c *check) present(v *value, at *place, names []string) *mismatch {
	for _, name := range names {
		c.left -= len(v.names) / 8
		if !slices.Contains(v.names, name) {
			return at.member(name).is("is missing")
		}
	}
	return nil
}

func (c *check) object(n *node, v *value, at *place, seen []bool) *mismatch {
	switch {
	case len(v.items) < n.fewest:
		return at.is("must have at least %d members", n.fewest)
	case n.most >= 0 && len(v.items) > n.most:
		return at.is("must have at most %d members", n.most)
	}
	for i, name := range v.names {
		if m := c.member(n, name, v, i, at, seen); m != nil {
			return m
		}
	}
	return c.present(v, at, n.required)
}

// member checks the i-th member of v.
func (c *check) member(n *node, name string, v *value, i int, at *place, seen []bool) *mismatch {
	here, known := at.member(name), false
	apply := func(sub *node) *mismatch {
		known = true
		return c.fits(sub, &v.items[i], here, nil)
	}
	if sub := n.properties[name]; sub != nil {
		if m := apply(sub); m != nil {
			return m
		}
	}
	for _, p := range n.patterns {
		switch {
		case p.re == nil:
			known = true
		case c.matches(&p.pattern, name):
			if m := apply(p.node); m != nil {
				return m
			}
		}
	}
	if !known && n.additional != nil {
		if n.additional.never {
			return here.is("is not a member of its schema")
		}
		if m := apply(n.additional); m != nil {
			return m
		}
	}
	if n.names != nil {
		quoted := read(jsontype.AppendString(nil, name))
		if m := c.fits(n.names, &quoted, nil, nil); m != nil {
			return at.is("has a member whose name %s", m.why)
		}
	}
	if known && seen != nil {
		seen[i] = true
	}
	return nil
}

func (c *check) array(n *node, v *value, at *place, seen []bool) *mismatch {
	switch {
	case len(v.items) < n.shortest:
		return at.is("must have at least %d elements", n.shortest)
	case n.longest >= 0 && len(v.items) > n.longest:
		return at.is("must have at most %d elements", n.longest)
	}
	for i := range v.items {
		sub := n.items
		if i < len(n.prefix) {
			sub = n.prefix[i]
		}
		if sub == nil {
			continue
		}
		if m := c.fits(sub, &v.items[i], at.child(v, i), nil); m != nil {
			return m
		}
		if seen != nil {
			seen[i] = true
		}
	}
	if n.unique {
		c.left -= len(v.raw) / 16
		have := make(map[string]bool, len(v.items))
		for i := range v.items {
			form := string(v.items[i].canonical(nil))
			if have[form] {
				return at.child(v, i).is("is repeated")
			}
			have[form] = true
		}
	}
	return c.contains(n, v, at, seen)
}

func (c *check) contains(n *node, v *value, at *place, seen []bool) *mismatch {
	if n.contains == nil {
		return nil
	}
	fewest, found := 1, 0
	if n.fewestIn >= 0 {
		fewest = n.fewestIn
	}
	for i := range v.items {
		if c.fits(n.contains, &v.items[i], at.child(v, i), nil) == nil {
			if found++; seen != nil {
				seen[i] = true
			}
		}
	}
	switch {
	case found < fewest:
		return at.is("must have at least %d elements of a kind, and has %d", fewest, found)
	case n.mostIn >= 0 && found > n.mostIn:
		return at.is("must have at most %d elements of a kind, and has %d", n.mostIn, found)
	}
	return nil
}

func (c *check) text(n *node, v *value, at *place) *mismatch {
	if n.minLength < 0 && n.maxLength < 0 && n.pattern == nil {
		return nil
	}
	c.left -= len(v.raw) / 64
	s := v.text()
	switch length := utf8.RuneCountInString(s); {
	case length < n.minLength:
		return at.is("must have at least %d characters", n.minLength)
	case n.maxLength >= 0 && length > n.maxLength:
		return at.is("must have at most %d characters", n.maxLength)
	}
	if n.pattern != nil && !c.matches(n.pattern, s) {
		return at.is("must match %s", fault.Clip(n.pattern.re.String()))
	}
	return nil
}

func (c *check) number(n *node, v *value, at *place) *mismatch {
	if n.min == nil && n.max == nil && n.aboveMin == nil && n.belowMax == nil && n.multipleOf == nil {
		return nil
	}
	is := v.number()
	c.left -= len(v.raw) / 64
	switch {
	case n.min != nil && is.Compare(n.min.Number) < 0:
		return at.is("must be at least %s", fault.Clip(n.min.text))
	case n.max != nil && is.Compare(n.max.Number) > 0:
		return at.is("must be at most %s", fault.Clip(n.max.text))
	case n.aboveMin != nil && is.Compare(n.aboveMin.Number) <= 0:
		return at.is("must be above %s", fault.Clip(n.aboveMin.text))
	case n.belowMax != nil && is.Compare(n.belowMax.Number) >= 0:
		return at.is("must be below %s", fault.Clip(n.belowMax.text))
	}
	if n.multipleOf == nil {
		return nil
	}
	digits := is.Digits() + n.multipleOf.Digits()
	if c.left -= digits * digits / 1024; c.left < 0 {
		return spent
	}
	if !is.MultipleOf(n.multipleOf.Number) {
		return at.is("must be a multiple of %s", fault.Clip(n.multipleOf.text))
	}
	return nil
}
