// Package imports holds the tree to the rules of the house that a compiler does not check.
//
// The rules lie in three tables, each row with its reason: packages (who may
// import whom), libraries (which package owns which dependency) and denied (what
// of the standard library is closed to whom). They fail closed: a package of ours,
// or a library, that no row names is a violation that asks for one.
//
// The tree is read with go/parser, all files of all platforms alike, whatever
// their build tags say.
package imports
