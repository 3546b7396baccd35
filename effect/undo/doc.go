// Package undo carries out Message.Undo: it makes the command that takes back what an entry of the journal changed.
//
// What the entry changed, and what was there before, follows from the journal. The past is read beside the live state, which goes on meanwhile. Whether the result still stands is therefore checked
// twice: against the journal, which says who changed it since, and by the command itself, in the one step in which it
// takes effect. If somebody changes it in between, the journal is read again.
package undo
