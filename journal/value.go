package journal

import (
	"bytes"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// maxDepth bounds how deep values may nest. A frame nests 64 deep at most (PROTOCOL 2), an outcome wraps its data.
const maxDepth = 129

// valueEnd returns the index after the JSON value that begins at b[i], or -1 where there is none, or where it has a line feed in
// it: a value never ends a line early. The message was decoded strictly before it got here, so names are not compared.
func valueEnd(b []byte, i int) int {
	end := jsontype.Skip(b, i, maxDepth)
	if end > i && bytes.IndexByte(b[i:end], '\n') >= 0 {
		return -1
	}
	return end
}

// at is b[i], or NUL past the end: no JSON token begins with NUL, so ends need no test of their own.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}
