// Package jsonschema checks JSON values against schemas that others wrote.
//
// A schema is JSON Schema draft 2020-12, or draft 7 where that uses other words for the same;
// keywords next to a $ref count. [Compile] refuses what is not a schema, and what it cannot check:
// references to other documents or by anchor, dynamic references, and an $id below the root.
// Annotations promise nothing: format, the content keywords, unknown keywords, and ECMA-262
// patterns that regular expressions without backtracking cannot express, such as a lookahead.
//
// The cost of a check is bounded by the sizes of schema and value. References that lead back to
// themselves without a step into the value are refused, patterns are matched in linear time, and a
// value whose check takes too many steps is refused.
package jsonschema
