// Package record turns calls into the journal's entries, which it reads back as calls, states, or answers about the past.
//
// It knows no actor, so a log is read, and a state restored, without a running kernel.
//
// # Order and durability
//
//   - Replay and Fold apply commands in the order of their entries, and nothing else builds a state from the journal.
//   - An Encoder writes what the types of request and outcome keep (PROTOCOL 7); what it withholds is in no entry.
//   - A View reads up to the last entry that is on disk. Before it answers, it syncs the journal, so that the proof of every
//     answer that was released is found.
//
// # What it does not promise
//
//   - An entry that was archived is found only while its archive is available; answers say which entries are missing.
//   - The index and the snapshots only save work: where they cannot be used, the journal is read.
package record
