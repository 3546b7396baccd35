// Package policy judges calls by rules about their arguments (PROTOCOL 10).
//
// Rules are written in Cedar. Everything is permitted by default, and a rule forbids or asks: the policy narrows what
// tokens allow and never widens it. [Read] reads the files, [Compile] checks them and returns a [Set], and [Set.Decide]
// judges one call. A Set is immutable, and safe for concurrent use. A rule whose evaluation fails denies the call.
package policy
