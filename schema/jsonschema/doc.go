// Package jsonschema checks JSON values against untrusted schemas.
//
// A schema is JSON Schema draft 2020-12. Keywords that draft 7 names differently are accepted too;
// keywords next to a $ref count. [Compile] refuses an invalid schema, and features that it cannot check:
// references to other documents or by anchor, dynamic references, and an $id below the root.
// It does not check format, the content keywords, unknown keywords, and ECMA-262
// patterns that need backtracking, such as a lookahead.
//
// The cost of a check is bounded by the sizes of the schema and the value. A schema that refers to itself for the same
// value is refused, patterns are matched in linear time, and a value whose check takes too many steps is refused.
package jsonschema
