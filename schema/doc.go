// Package schema is the wire contract of pwos: what a line on a channel may say.
//
// One frame is one line of JSON. Two dialects of the envelope are told apart frame by frame: OsMessage
// ({kind, type, data, metadata}, MESSAGE 4.1) and the older OsEvent ({type, name, payload, metadata}, EVENT 4.1).
// Decode reads either into a Message; the Append functions write either. The syscall table (Syscalls) says which
// types exist; the Go types behind its rows decode the data of a request, generate its JSON Schema and say what of it the
// journal may hold, so that none of the three can drift (package jsontype).
//
// # What it promises
//
//   - Decoding is strict and total: any line gives a Message or exactly one *fault.Fault, and a
//     Message that came with a fault still carries what an answer needs (dialect, type, id, correlation).
//   - Data passes through exactly as it was written: numbers, escapes, inner white space, order of members.
//   - The same input gives the same verdict everywhere. Nothing here keeps state or does I/O, but for LineReader,
//     which reads from the source it was handed, and Stamper, which makes ids.
//
// # What it does not promise
//
//   - A decoded Message aliases the line it was decoded from; a caller that keeps it longer than the line copies it.
//   - It knows no authority: a well-formed message is not an allowed one.
package schema
