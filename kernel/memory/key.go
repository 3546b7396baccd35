package memory

import (
	"strings"
	"unicode"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// maxKey is the length of the longest key, in bytes, its leading slash not counted.
const maxKey = 1024

// parseKey returns a key in the form that it is stored in, without the leading slash, or says why it is none
// (PROTOCOL 5).
func parseKey(written string) (string, *schema.Error) {
	key := trim(written)
	if len(key) > maxKey {
		return "", kernel.Invalid("key", "must have at most %d bytes, not %d: store a long text as the value, under a short key", maxKey, len(key))
	}
	// A path that could be resolved would have several spellings, and could lead out of vault/ or into proc/.
	for rest, more := key, true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch segment {
		case "":
			return "", kernel.Invalid("key", "must not have an empty segment: %q: write it like notes/1, without a slash at the end or two in a row", written)
		case ".", "..":
			return "", kernel.Invalid("key", "must not have a segment %q: %q: keys are whole names, nothing is resolved", segment, written)
		}
	}
	if strings.ContainsFunc(key, unicode.IsControl) {
		return "", kernel.Invalid("key", "must not have control characters: %q", written)
	}
	return key, nil
}

// trim takes off the leading slash, which makes no difference.
func trim(written string) string { return strings.TrimPrefix(written, "/") }
