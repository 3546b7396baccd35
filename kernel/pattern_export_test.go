package kernel

import "slices"

// Covers is what one pattern says of another, Cover what the index of a list does.
func Covers(pattern, other string) bool { return covers(pattern, other) }

func Cover(list []string, other string) bool { return patternsOf(list).cover(other) }

// Looks is how many patterns the index looks for at most.
func Looks(other string) int { return len(slices.Collect(covering(other))) }

// Meet is what two lists both allow.
func Meet(a, b []string) []string { return meet(a, b) }
