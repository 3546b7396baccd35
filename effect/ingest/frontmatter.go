package ingest

import (
	"bytes"
)

// MaxFrontMatter bounds front matter in bytes.
const MaxFrontMatter = 64 << 10

// SplitFrontMatter cuts a text into its front matter and what follows. Front matter is there if the first line is --- (YAML) or
// +++ (TOML) and nothing else; it ends at the next such line, or at one of ... where it is YAML. White space at the end of
// these lines does not count. fence is 0, '-' or '+'. The error is IngestInvalid: it does not end, or is too long.
func SplitFrontMatter(text []byte) (front, content []byte, fence byte, err error) {
	first, rest := line(text)
	switch string(first) {
	case "---", "+++":
		fence = first[0]
	default:
		return nil, text, 0, nil
	}
	for at := 0; at < len(rest); {
		next, after := line(rest[at:])
		if string(next) == string(first) || fence == '-' && string(next) == "..." {
			if at > MaxFrontMatter {
				break
			}
			return rest[:at], after, fence, nil
		}
		at = len(rest) - len(after)
	}
	return nil, nil, 0, invalid("a line of %s alone has to end it within %d bytes", first, MaxFrontMatter)
}

// line returns the first line of text, without white space at its end, and what follows it.
func line(text []byte) (first, rest []byte) {
	first, rest, _ = bytes.Cut(text, []byte{'\n'})
	return bytes.TrimRight(first, " \t\r"), rest
}
