// Package outlog is the form of an agent's log: what its files have besides the output itself.
//
// A log is a file and the older ones beside it, each of which begins where the one before it ended. The first line of a file that
// does not begin the log is a header with its position, so a reader knows how much older output is gone. Where output is missing
// because it could not be written, a line says how much. The header cannot be forged: a file whose output begins like one has one.
package outlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	before  = "[pwos: the output before byte "
	after   = " is in older files, or gone]\n"
	longest = len(before) + 20 + len(after)
)

// HeaderFor returns the header of a file whose first byte of output has a position in the log, "" if it needs none.
func HeaderFor(start int64, output []byte) string {
	if start == 0 && !bytes.HasPrefix(output, []byte(before[:1])) { // one byte, since the rest may come with the next write
		return ""
	}
	return before + strconv.FormatInt(start, 10) + after
}

// Header returns the position in the log of the first byte of output of a file, and the length of its header.
func Header(file io.ReaderAt) (start, length int64, err error) {
	first := make([]byte, longest)
	n, err := file.ReadAt(first, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, fmt.Errorf("read header: %w", err)
	}
	line, found := strings.CutPrefix(string(first[:n]), before)
	if !found {
		return 0, 0, nil
	}
	number, _, found := strings.Cut(line, after)
	if start, err = strconv.ParseInt(number, 10, 64); err != nil || !found || start < 0 {
		return 0, 0, nil
	}
	return start, int64(len(before) + len(number) + len(after)), nil
}

// Missing returns the line that stands for output that could not be written.
func Missing(bytes int64, why error) []byte {
	return fmt.Appendf(nil, "[pwos: %d bytes of output are missing here: %v]\n", bytes, why)
}
