package policy

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/promptware-os/pwos/schema"
)

// Learned is what agents did, in more detail than a grant can express.
type Learned struct {
	Keys    map[string]map[string]bool // of memory, by syscall
	Lists   map[string]bool            // listed prefixes; "" is all
	Fetches map[Fetched]bool
}

// Fetched is the address of a request.
type Fetched struct{ Method, Host string }

// NewLearned returns an empty Learned.
func NewLearned() *Learned {
	return &Learned{Keys: make(map[string]map[string]bool), Lists: make(map[string]bool), Fetches: make(map[Fetched]bool)}
}

// Key records a key that a syscall was called with.
func (l *Learned) Key(syscall, key string) {
	if l.Keys[syscall] == nil {
		l.Keys[syscall] = make(map[string]bool)
	}
	l.Keys[syscall][strings.TrimPrefix(key, "/")] = true
}

// List records a prefix that was listed.
func (l *Learned) List(prefix string) { l.Lists[strings.TrimPrefix(prefix, "/")] = true }

// Rules returns rules for agents under a profile. They allow what was learned and nothing else of the same syscalls. A key
// in a directory of keys allows that whole directory.
func (l *Learned) Rules(profile string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Learned from agents, for agents under the profile %s. Widen it by hand.\n", profile)
	rule := func(id, fix string, action *schema.Syscall, terms []string) {
		slices.Sort(terms)
		fmt.Fprintf(&b, "\n@id(%s)\n@fix(%s)\n", quote(profile+"-"+id), quote(fix))
		fmt.Fprintf(&b, "forbid(principal in Profile::%s, action == Syscall::%s, resource)", quote(profile), quote(action.Type))
		if len(terms) > 0 {
			fmt.Fprintf(&b, "\nunless {\n  %s\n}", strings.Join(slices.Compact(terms), " ||\n  "))
		}
		b.WriteString(";\n")
	}
	for _, row := range []*schema.Syscall{
		schema.MemoryGet.Row(), schema.MemorySet.Row(), schema.MemoryCompareAndSet.Row(), schema.MemoryDelete.Row(),
	} {
		if keys := l.Keys[row.Type]; len(keys) > 0 {
			var terms []string
			for key := range keys {
				if isNoKey(key) {
					continue
				}
				terms = append(terms, below("key", key))
			}
			_, action, _ := strings.Cut(row.Type, ".")
			rule(strings.ToLower(action), "use one of the keys that its profile allows, or ask the operator to widen the rule", row, terms)
		}
	}
	if len(l.Lists) > 0 && !l.Lists[""] {
		var terms []string
		for prefix := range l.Lists {
			if isNoKey(prefix) {
				continue
			}
			terms = append(terms, "context.args has prefix && context.args.prefix like "+pattern(prefix))
		}
		rule("list", "list below a prefix that its profile allows, or ask the operator to widen the rule", schema.MemoryList.Row(), terms)
	}
	if len(l.Fetches) > 0 {
		var terms []string
		for f := range maps.Keys(l.Fetches) {
			terms = append(terms, fmt.Sprintf("context.args.host == %s && context.args.method == %s", quote(f.Host), quote(f.Method)))
		}
		rule("fetch", "fetch from a host and with a method that its profile allows, or ask the operator to widen the rule", schema.HTTPFetch.Row(), terms)
	}
	return b.Bytes()
}

// isNoKey reports whether a text without its leading slash is neither a key nor a prefix of one, so that a call with it has
// failed.
func isNoKey(text string) bool { return text == "" || text[0] == '/' }

// below returns the condition that a member is in the directory of a key.
func below(member, key string) string {
	if i := strings.LastIndexByte(key, '/'); i > 0 {
		return "context.args." + member + " like " + pattern(key[:i+1])
	}
	return "context.args." + member + " == " + quote(key)
}

func quote(text string) string { return string(types.String(text).MarshalCedar()) }

// pattern returns a pattern for all texts with a prefix.
func pattern(prefix string) string {
	return string(types.NewPattern(prefix, types.Wildcard{}).MarshalCedar())
}
