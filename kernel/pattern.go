package kernel

import (
	"iter"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Patterns of allowed_syscalls either include one another or are disjoint: a type or a code is within its domain, a
// domain within *, a path within a path and /*. So the intersection of two lists holds, of each, the patterns that
// the other includes.

// matches reports whether a pattern names the syscall.
func matches(pattern string, row *schema.Syscall) bool {
	switch {
	case pattern == row.Type:
		return true
	case pattern == everything:
		return row.Grant != schema.ByName
	case wild(pattern):
		return row.Grant != schema.ByName && strings.HasPrefix(row.Type, pattern[:len(pattern)-1])
	}
	return pattern == row.Code && row.Code != ""
}

// covers reports whether a pattern includes all that other matches, whatever syscalls a later kernel adds: a domain
// is within itself and *, not within a list of all that it has today. A syscall that is granted by name is only
// within its name, and so is a registered one: else a process that may not call it could have a child that may.
func covers(pattern, other string) bool {
	if pattern == other {
		return true
	}
	if word, rest, ok := splitPattern(other); ok {
		if own, all, ok := splitPattern(pattern); ok {
			prefix, tree := strings.CutSuffix(all, everything)
			return own == word && tree && strings.HasPrefix(rest, prefix)
		}
		if other = behind(word); other == "" {
			return false
		}
	}
	if row, ok := Named(other); ok {
		return matches(pattern, row)
	}
	return pattern == everything && !schema.Registrable(other)
}

func anyCovers(patterns []string, other string) bool { return including(patterns, other) != "" }

// including is the first pattern that includes all that other matches, "" if none does.
func including(patterns []string, other string) string {
	for _, p := range patterns {
		if covers(p, other) {
			return p
		}
	}
	return ""
}

// patterns finds what a list of patterns covers in a time that does not depend on the length of the list.
type patterns struct {
	has map[string]bool
	odd []string // paths that end within a name, which no grant has today
}

func patternsOf(list []string) *patterns {
	p := &patterns{has: make(map[string]bool, len(list))}
	for _, one := range list {
		p.add(one)
	}
	return p
}

func (p *patterns) add(pattern string) {
	p.has[pattern] = true
	if _, rest, ok := splitPattern(pattern); ok {
		if prefix, tree := strings.CutSuffix(rest, everything); tree && prefix != "" && !strings.HasSuffix(prefix, "/") {
			p.odd = append(p.odd, pattern)
		}
	}
}

// cover is anyCovers.
func (p *patterns) cover(other string) bool {
	for one := range covering(other) {
		if p.has[one] {
			return true
		}
	}
	return anyCovers(p.odd, other)
}

// covering returns the patterns that cover one, except odd ones: itself, the paths above it, and
// those of the syscall that it names.
func covering(other string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(other) {
			return
		}
		if word, rest, ok := splitPattern(other); ok {
			if !yield(word + ":" + everything) {
				return
			}
			for i := range len(rest) {
				if rest[i] == '/' && !yield(word+":"+rest[:i+1]+everything) {
					return
				}
			}
			if other = behind(word); other == "" {
				return
			}
		}
		row, ok := Named(other)
		if !ok {
			if !schema.Registrable(other) {
				yield(everything)
			}
			return
		}
		if !yield(row.Type) || row.Code != "" && !yield(row.Code) || row.Grant == schema.ByName || !yield(everything) {
			return
		}
		for i := range len(row.Type) {
			if row.Type[i] == '.' && !yield(row.Type[:i+1]+everything) {
				return
			}
		}
	}
}

// meet returns the intersection of two sorted lists of patterns, sorted.
func meet(a, b []string) []string {
	list := []string{}
	inA, inB, both := patternsOf(a), patternsOf(b), patternsOf(nil)
	for _, pattern := range a {
		if inB.cover(pattern) {
			list = append(list, pattern)
			both.add(pattern)
		}
	}
	for _, pattern := range b {
		if inA.cover(pattern) && !both.cover(pattern) {
			list = append(list, pattern)
			both.add(pattern)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// The words before the colon of patterns for things other than the kernel's syscalls: user-space syscalls by path
// below root, tools of agent hosts by host and name, upstreams by name, services of this machine by port.
const (
	callWord      = "Call"
	toolWord      = "Tool"
	upstreamWord  = "Upstream"
	localhostWord = "Localhost"
)

// behind is the syscall that a word's subject uses, so that a grant of the syscall includes it, or
// "".
func behind(word string) string {
	switch word {
	case callWord:
		return schema.CallType
	case toolWord:
		return schema.HostToolUse.Type
	}
	return ""
}

// splitPattern splits a pattern such as Call:mcp/fs/* into word and rest.
func splitPattern(pattern string) (word, rest string, ok bool) {
	word, rest, ok = strings.Cut(pattern, ":")
	return word, rest, ok && (word == callWord || word == toolWord || word == upstreamWord || word == localhostWord)
}

// Named finds a syscall by its type or its code, except the kernel's own commands, which clients
// cannot call.
func Named(pattern string) (*schema.Syscall, bool) {
	if row, ok := schema.Lookup(pattern); ok {
		return row, !row.Internal
	}
	rows := schema.Syscalls()
	i := slices.IndexFunc(rows, func(row *schema.Syscall) bool { return row.Code == pattern && !row.Internal })
	if i < 0 || pattern == "" {
		return nil, false
	}
	return rows[i], true
}

// everything is the pattern of all syscalls except the operator's own and those that are granted by name.
const everything = "*"

// wild reports whether the pattern covers a whole domain, such as Memory.*
func wild(pattern string) bool { return strings.HasSuffix(pattern, ".*") }
