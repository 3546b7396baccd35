// Package undo runs Message.Undo: it makes the command that reverts the change of a journal entry.
//
// The change, and the state before it, follow from the journal. Past states are read while the live state changes. An
// undo is made only if its change is still the last one, which is checked twice: against the journal, which has later
// changes and their callers, and by the command itself when it takes effect. After a change in between, the journal is
// read again.
package undo
