// Package schema is the wire contract of pwos: what a line on a channel may be.
//
// One frame is one line of JSON. There are two dialects of the envelope, recognised frame by frame: OsMessage ({kind,
// type, data, metadata}, MESSAGE 4.1) and the older OsEvent ({type, name, payload, metadata}, EVENT 4.1). Decode
// decodes either into a Message; the Append functions write either. The syscall table (Syscalls) has all types; the
// Go types of its rows decode the data of a request, generate its JSON Schema and say what of it the journal may
// hold, so that these three cannot differ (package jsontype).
//
// # What it promises
//
//   - Decoding is strict and total: any line gives a Message or exactly one *fault.Fault, and a Message with a fault
//     still has what an answer needs (dialect, type, id, correlation).
//   - Data is passed on exactly as it was written: numbers, escapes, inner white space, order of members.
//   - The same input always gives the same result. Nothing here keeps state or does I/O, except LineReader, which reads
//     from its source, and Stamper, which makes ids.
//
// # What it does not promise
//
//   - A decoded Message aliases its line; a caller that keeps it longer must copy it.
//   - It knows no authority: a well-formed message is not an allowed one.
package schema
