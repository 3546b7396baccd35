// Package uri resolves names of resources.
//
// All functions depend only on text: they open, look up and fetch nothing, so the same name always has the same meaning.
// The forms of a name are (PROTOCOL 5, ABI 4):
//
//	os:///p/q       below root, or below the mount with the longest prefix
//	os/p/q  p/q     the same as os:///p/q, whatever the base
//	/p/q            below root; below the host of an https: base
//	./p  ../p       relative to the base; without a base, below root
//	https://h/p     as it is, in canonical form
//
// # What is refused
//
// A name has one meaning or none: what two readers could read differently is refused, not corrected.
//
//   - A way above root, also above the root of an https: host.
//   - Any scheme but os: and https:, os: with a host, and //host/p.
//   - In os: names, an encoding of what may be written plainly (%41, %2e), of a slash, a backslash, a percent sign or
//     a control character, and one that is broken or no UTF-8. So no dot and no slash can hide, and nothing is
//     decoded twice. In https: names %2F, %5C and %25 stay as they are, what may be plain becomes plain, and an
//     encoded dot is refused if it would make the segment . or .. .
//   - Control characters, NUL among them, backslashes, invisible and private characters, characters that look like a
//     dot, a slash or a backslash, a query or fragment in an os: name, a fragment anywhere, and a segment that begins
//     or ends with a space.
//   - Empty segments in os: names; those of https: names are the server's and stay.
//   - Hosts that are no DNS name in ASCII and no canonical IP address, and ports out of range.
//   - A user before a host, with a password or without.
//   - More than MaxLength bytes, before or after, and segments of more than MaxSegment bytes in os: names.
//
// Dot segments are resolved in the text. Names are compared byte by byte: only scheme and host are normalized.
package uri
