package jsonschema

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// Schema is a compiled schema. It is immutable.
type Schema struct{ root *node } // nil: accepts any value

// node is a schema or a subschema. The zero node accepts any value.
type node struct {
	at    *place
	never bool // no value matches

	kinds  kinds           // 0: any
	values map[string]bool // in canonical form; nil: any
	listed string          // the same values as text

	// Schemas for the same value.
	all, any, one   []*node
	not             *node
	when, then, or  *node // if, then, else
	withMember      map[string]*node
	withMemberNames map[string][]string

	// Of an object.
	properties       map[string]*node
	patterns         []named
	additional       *node
	names            *node
	required         []string
	fewest, most     int // members; -1: no bound
	otherProperties  *node
	prefix           []*node // of an array: its first elements
	items            *node   // the other elements
	otherItems       *node
	contains         *node
	fewestIn, mostIn int
	shortest         int // elements
	longest          int
	unique           bool

	// Of a string, in characters.
	minLength, maxLength int
	pattern              *pattern

	// Of a number.
	min, max           *bound
	aboveMin, belowMax *bound
	multipleOf         *bound

	visited int // set by cycles: 1 in progress, 2 done
}

// named is a pattern of member names, and the schema of matching members.
type named struct {
	pattern
	*node
}

// bound is a number in a schema and its text.
type bound struct {
	jsontype.Number
	text string
}

// compiler compiles the subschemas of a document to nodes.
type compiler struct {
	doc      *value
	nodes    map[*value]*node
	order    []*node // in order of creation
	patterns int
	err      *mismatch // the first
}

// Compile compiles a schema, which must be valid JSON. It returns a Misfit if the schema is invalid or cannot be checked.
func Compile(text []byte) (*Schema, *Misfit) {
	doc := read(text)
	c := compiler{doc: &doc, nodes: make(map[*value]*node)}
	s := &Schema{root: c.node(&doc, nil)}
	for _, n := range c.order {
		if c.err == nil {
			c.cycles(n)
		}
	}
	switch {
	case c.err != nil:
		return nil, c.err.shown()
	case doc.kind == object && len(doc.names) == 0:
		s.root = nil
	}
	return s, nil
}

// fail records an error in the schema. Only the first one counts.
func (c *compiler) fail(at *place, format string, args ...any) {
	if c.err == nil {
		c.err = at.is(format, args...)
	}
}

// cycles fails if a schema refers to itself for the same value.
func (c *compiler) cycles(n *node) {
	switch n.visited {
	case 1:
		c.fail(n.at, "refers to itself without end")
		return
	case 2:
		return
	}
	n.visited = 1
	for _, next := range slices.Concat(n.all, n.any, n.one, []*node{n.not, n.when, n.then, n.or}) {
		if next != nil {
			c.cycles(next)
		}
	}
	for _, next := range n.withMember {
		c.cycles(next)
	}
	n.visited = 2
}

// node returns the node of a schema. It compiles each schema once.
func (c *compiler) node(v *value, at *place) *node {
	if n := c.nodes[v]; n != nil {
		return n
	}
	n := &node{at: at, fewest: -1, most: -1, fewestIn: -1, mostIn: -1, shortest: -1, longest: -1, minLength: -1, maxLength: -1}
	c.nodes[v], c.order = n, append(c.order, n)
	switch {
	case v.kind == boolean:
		n.never = v.raw[0] == 'f'
	case v.kind != object:
		c.fail(at, "must be a schema: an object, true or false")
	default:
		for i, name := range v.names {
			if c.err != nil {
				return n
			}
			c.keyword(n, name, &v.items[i], v, at.member(name))
		}
	}
	return n
}

// keyword compiles one member of a schema.
func (c *compiler) keyword(n *node, name string, v, schema *value, at *place) {
	switch name {
	case "type":
		n.kinds = c.kinds(v, at)
	case "enum", "const":
		c.values(n, name, v, at)
	case "$ref":
		n.all = append(n.all, c.reference(v, at))
	case "allOf":
		n.all = append(n.all, c.list(v, at)...)
	case "anyOf":
		n.any = c.list(v, at)
	case "oneOf":
		n.one = c.list(v, at)
	case "not":
		n.not = c.node(v, at)
	case "if":
		n.when = c.node(v, at)
	case "then":
		n.then = c.node(v, at)
	case "else":
		n.or = c.node(v, at)
	case "dependentSchemas":
		n.withMember = c.members(v, at)
	case "dependentRequired":
		n.withMemberNames = c.memberNames(v, at)
	case "dependencies":
		c.dependencies(n, v, at)
	case "$defs", "definitions":
		c.members(v, at)
	case "$id":
		if v.kind != text {
			c.fail(at, "must be a string")
		} else if schema != c.doc {
			c.fail(at, "is not supported below the root")
		}
	case "$dynamicRef", "$recursiveRef":
		c.fail(at, "is not supported: a $ref can name a schema of this one")
	default:
		c.contents(n, name, v, schema, at)
	}
}

// contents compiles the keywords about the children of a value.
func (c *compiler) contents(n *node, name string, v, schema *value, at *place) {
	switch name {
	case "properties":
		n.properties = c.members(v, at)
	case "patternProperties":
		nodes := c.members(v, at)
		for _, name := range v.names {
			n.patterns = append(n.patterns, named{c.pattern(name, at.member(name)), nodes[name]})
		}
	case "additionalProperties":
		n.additional = c.node(v, at)
	case "propertyNames":
		n.names = c.node(v, at)
	case "unevaluatedProperties":
		n.otherProperties = c.node(v, at)
	case "required":
		n.required = c.texts(v, at)
	case "minProperties":
		n.fewest = c.count(v, at)
	case "maxProperties":
		n.most = c.count(v, at)
	case "prefixItems":
		n.prefix = c.list(v, at)
	case "items":
		if v.kind == array { // draft 7
			if n.prefix = c.list(v, at); schema.member("additionalItems") != nil {
				n.items = c.node(schema.member("additionalItems"), at.within.member("additionalItems"))
			}
		} else {
			n.items = c.node(v, at)
		}
	case "unevaluatedItems":
		n.otherItems = c.node(v, at)
	case "contains":
		n.contains = c.node(v, at)
	case "minContains":
		n.fewestIn = c.count(v, at)
	case "maxContains":
		n.mostIn = c.count(v, at)
	case "minItems":
		n.shortest = c.count(v, at)
	case "maxItems":
		n.longest = c.count(v, at)
	case "uniqueItems":
		if v.kind != boolean {
			c.fail(at, "must be true or false")
		}
		n.unique = v.raw[0] == 't'
	case "minLength":
		n.minLength = c.count(v, at)
	case "maxLength":
		n.maxLength = c.count(v, at)
	case "pattern":
		if v.kind != text {
			c.fail(at, "must be a string")
			return
		}
		p := c.pattern(v.text(), at)
		n.pattern = &p
	case "minimum":
		n.min = c.number(v, at)
	case "maximum":
		n.max = c.number(v, at)
	case "exclusiveMinimum":
		n.aboveMin = c.number(v, at)
	case "exclusiveMaximum":
		n.belowMax = c.number(v, at)
	case "multipleOf":
		if n.multipleOf = c.number(v, at); c.err == nil && n.multipleOf.Compare(jsontype.Number{}) <= 0 {
			c.fail(at, "must be above 0")
		}
	}
}

func (c *compiler) kinds(v *value, at *place) (set kinds) {
	names := []string{}
	if v.kind == text {
		names = append(names, v.text())
	} else {
		names = c.texts(v, at)
	}
	for _, name := range names {
		k := kindOf(name)
		if k == 0 {
			c.fail(at, "must be one of %s, or a list of them", strings.Join(kindNames, ", "))
		}
		set |= k
	}
	if set == 0 {
		c.fail(at, "must name a type")
	}
	return set
}

// values compiles an enum or a const. If a schema has both, a value must match both.
func (c *compiler) values(n *node, name string, v *value, at *place) {
	list := []value{*v}
	if name == "enum" {
		if v.kind != array {
			c.fail(at, "must be an array")
			return
		}
		list = v.items
	}
	values := make(map[string]bool, len(list))
	for i := range list {
		if form := string(list[i].canonical(nil)); n.values == nil || n.values[form] {
			values[form] = true
		}
	}
	n.values, n.listed = values, string(v.raw)
}

// reference returns the schema of a $ref: the root, or a subschema by a JSON pointer (RFC 6901).
func (c *compiler) reference(v *value, at *place) *node {
	pointer, ok := "", v.kind == text
	if ok {
		pointer, ok = strings.CutPrefix(v.text(), "#")
	}
	if !ok || pointer != "" && pointer[0] != '/' {
		c.fail(at, "must name a schema of this one, such as #/$defs/name")
		return nil
	}
	target, place := c.doc, (*place)(nil)
	for i, part := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		part, ok := unescaped(part)
		next := -1
		switch {
		case !ok:
		case target.kind == object:
			next = slices.Index(target.names, part)
		case target.kind == array:
			if k, err := strconv.Atoi(part); err == nil && k < len(target.items) {
				next = k
			}
		}
		if next < 0 {
			c.fail(at, "names nothing of this schema")
			return nil
		}
		place, target = place.child(target, next), &target.items[next]
	}
	return c.node(target, place)
}

// list compiles an array of schemas.
func (c *compiler) list(v *value, at *place) (nodes []*node) {
	if v.kind != array || len(v.items) == 0 {
		c.fail(at, "must be an array of schemas, and not empty")
	}
	for i := range v.items {
		nodes = append(nodes, c.node(&v.items[i], at.child(v, i)))
	}
	return nodes
}

// members compiles an object whose members are schemas.
func (c *compiler) members(v *value, at *place) map[string]*node {
	if v.kind != object {
		c.fail(at, "must be an object whose members are schemas")
	}
	nodes := make(map[string]*node, len(v.names))
	for i, name := range v.names {
		nodes[name] = c.node(&v.items[i], at.member(name))
	}
	return nodes
}

func (c *compiler) memberNames(v *value, at *place) map[string][]string {
	if v.kind != object {
		c.fail(at, "must be an object whose members are lists of names")
	}
	lists := make(map[string][]string, len(v.names))
	for i, name := range v.names {
		lists[name] = c.texts(&v.items[i], at.member(name))
	}
	return lists
}

// dependencies compiles the keyword dependencies of draft 7, which later drafts split into two.
func (c *compiler) dependencies(n *node, v *value, at *place) {
	if v.kind != object {
		c.fail(at, "must be an object whose members are schemas or lists of names")
		return
	}
	n.withMember, n.withMemberNames = make(map[string]*node), make(map[string][]string)
	for i, name := range v.names {
		if item := &v.items[i]; item.kind == array {
			n.withMemberNames[name] = c.texts(item, at.member(name))
		} else {
			n.withMember[name] = c.node(item, at.member(name))
		}
	}
}

func (c *compiler) texts(v *value, at *place) (list []string) {
	if v.kind != array {
		c.fail(at, "must be an array of strings")
	}
	for i := range v.items {
		if v.items[i].kind != text {
			c.fail(at.child(v, i), "must be a string")
			return nil
		}
		list = append(list, v.items[i].text())
	}
	return list
}

// unescaped returns a decoded segment of a JSON pointer in a URL fragment; false if it is invalid.
func unescaped(part string) (string, bool) {
	part, err := url.PathUnescape(part)
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(part), err == nil
}

func (c *compiler) count(v *value, at *place) int {
	n, ok := jsontype.ParseInteger(v.raw)
	if !ok || n < 0 || int64(int(n)) != n {
		c.fail(at, "must be a whole number, and not negative")
	}
	return int(n)
}

func (c *compiler) number(v *value, at *place) *bound {
	if v.kind&number == 0 {
		c.fail(at, "must be a number")
		return nil
	}
	return &bound{v.number(), string(v.raw)}
}
