// Package imports holds the tree to the rules of the house that a compiler does not check.
//
// Who may import whom, our own packages and libraries alike, is the table rules.txt, each rule with
// its reason. It fails closed: a package of ours, or a library, that no rule names is a violation
// that asks for one.
//
// The tree is read with go/parser, all files of all platforms alike, whatever their build tags say.
package imports
