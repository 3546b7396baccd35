// Package schema defines the wire format of pwos: frames, syscalls with their data.
//
// One frame is one line of JSON. There are two dialects of the envelope, recognised frame by frame: OsMessage ({kind,
// type, data, metadata}, MESSAGE 4.1) and the older OsEvent ({type, name, payload, metadata}, EVENT 4.1). Decode
// decodes both into a Message; the Append functions encode both. The syscall table (Syscalls) has all types. The
// Go types of its rows decode the data of a request, generate its JSON Schema and define what the journal may
// contain of it, so that these three cannot differ (package jsontype).
//
// # What it promises
//
//   - Decoding is strict and total: it returns a Message or exactly one *fault.Fault for any line, and a Message with a fault
//     still has the members that an answer needs (dialect, type, id, correlation).
//   - Data is passed on exactly as it was written: numbers, escapes, inner white space, order of members.
//   - The same input always has the same result. Nothing has state or does I/O, except LineReader, which reads
//     from its source, and Stamper, which makes ids.
//
// # What it does not promise
//
//   - A decoded Message aliases its line; a caller that keeps it longer must copy it.
//   - The package does not check permissions: a well-formed message may still be refused.
package schema
