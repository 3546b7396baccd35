// Package jsonschema checks JSON values against schemas that others wrote.
//
// A schema is JSON Schema as of draft 2020-12, or draft 7 where that has other words for the same; what stands beside a $ref
// counts. [Compile] refuses what is no schema, and what it does not know how to check: references to other documents or by anchor,
// dynamic references, and an $id below the root. These are annotations, and promise nothing: format, the content keywords, words of
// nobody's, and a pattern of ECMA-262 that regular expressions without backtracking do not have, such as a lookahead.
//
// What a check costs is bounded by the sizes of schema and value, whatever the two are: references that lead back to themselves
// without a step into the value are refused, patterns are matched in linear time, and a check that takes too many steps comes to
// the answer that the value does not fit.
package jsonschema
