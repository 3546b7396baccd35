// Package imports checks the rules of the tree that a compiler does not check.
//
// The table rules.txt says which packages and libraries may be imported by which packages, each rule with its reason. A
// package of this module, or a library, without a rule is a violation.
//
// The tree is read with go/parser: all files for all platforms, independent of build tags.
package imports
