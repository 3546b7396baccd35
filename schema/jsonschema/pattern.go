package jsonschema

import (
	"errors"
	"regexp"
	"regexp/syntax"
)

// maxPatterns is the largest number of instructions of all patterns of a schema: a short pattern can
// have millions.
const maxPatterns = 10_000

// pattern is a regular expression. The zero pattern matches any text: its expression needs backtracking and is not checked.
type pattern struct {
	re   *regexp.Regexp
	size int
}

// pattern compiles a regular expression.
func (c *compiler) pattern(text string, at *place) (p pattern) {
	tree, err := syntax.Parse(text, syntax.Perl)
	code := syntax.ErrorCode("")
	if wrong, ok := errors.AsType[*syntax.Error](err); ok {
		code = wrong.Code
	}
	switch code {
	case "":
		p.size = instructions(tree)
		c.patterns += p.size
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape:
		return p
	case syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
		c.patterns = maxPatterns + 1
	default:
		c.fail(at, "is no regular expression")
		return p
	}
	if c.patterns > maxPatterns {
		c.fail(at, "is too large: the patterns of a schema have at most %d instructions", maxPatterns)
		return p
	}
	if p.re, err = regexp.Compile(text); err != nil {
		c.fail(at, "is no regular expression")
	}
	return p
}

// instructions returns the approximate number of instructions of a syntax tree. Beyond maxPatterns it is not exact.
func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1) // at most 1000
	}
	return min(n, maxPatterns+1)
}

// matches reports whether a text matches, true if the pattern is not checked. It returns false if no steps are left.
func (c *check) matches(p *pattern, s string) bool {
	if p.re == nil {
		return true
	}
	if c.left -= 1 + len(s)*p.size/16; c.left < 0 {
		return false
	}
	return p.re.MatchString(s)
}
