package sdk

import (
	"strconv"
	"strings"
	"unicode"
)

// names is a set of names in use.
type names map[string]bool

func namesBeside(taken ...string) names {
	n := make(names)
	for _, name := range taken {
		n[name] = true
	}
	return n
}

// unique returns name, with a number if it is in use, and marks it as used.
func (n names) unique(name string) string {
	free := name
	for i := 2; n[free]; i++ {
		free = name + strconv.Itoa(i)
	}
	n[free] = true
	return free
}

// words splits the name of a syscall: Memory.CompareAndSet into memory, compare, and, set.
func words(name string) (list []string) {
	for part := range strings.SplitSeq(name, ".") {
		from := 0
		for i := 1; i < len(part); i++ {
			begins := isUpper(part[i]) && (!isUpper(part[i-1]) || i+1 < len(part) && !isUpper(part[i+1]) && !isDigit(part[i+1]))
			if begins {
				list, from = append(list, strings.ToLower(part[from:i])), i
			}
		}
		list = append(list, strings.ToLower(part[from:]))
	}
	return list
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// titled returns the name of a member as a part of a type's name: msg_ids as MsgIds. Invalid characters are left
// out.
func titled(name string) string {
	var b strings.Builder
	upper := true
	for _, r := range name {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			upper = true
		case upper:
			b.WriteRune(unicode.ToUpper(r))
			upper = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
