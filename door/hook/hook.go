// Package hook parses the input of the hook that an agent host runs before it uses a tool.
package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
)

// most is the longest hook input, in bytes.
const most = 32 << 20

// Bounds of the recorded input of a tool, in bytes. An input of at most longText bytes is recorded in full. In a longer one, members
// longer than longText are cut. If it is still longer than longInput, only its digest is recorded.
const (
	longText  = 2 << 10
	longInput = 10 << 10
)

// Read parses the hook input of a host. Claude Code and Codex use the same form: an object with session_id, tool_name
// and tool_input.
func Read(host string, r io.Reader) (*schema.ToolUseInput, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read question: %w", err)
	case len(text) > most:
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	case !schema.Valid(text):
		return nil, errors.New("it is not one strict JSON value")
	}
	question, err := members(text)
	if err != nil {
		return nil, err
	}
	session, err := str(question, "session_id")
	if err != nil {
		return nil, err
	}
	tool, err := str(question, "tool_name")
	if err != nil {
		return nil, err
	}
	input := question["tool_input"]
	if input == nil {
		return nil, errors.New("tool_input is missing")
	}
	kept, cut := short(input)
	in := &schema.ToolUseInput{Host: host, Session: session, Tool: schema.HostTool(tool), Input: kept, Cut: cut}
	if cwd, err := str(question, "cwd"); err == nil && len(cwd) <= 4096 { // a host may leave it out
		in.Cwd = cwd
	}
	if err := in.Check(); err != nil {
		return nil, err
	}
	return in, nil
}

func members(raw schema.Value) (map[string]schema.Value, error) {
	decoded, err := schema.TypeOf[map[string]schema.Value]().Decode(raw)
	if err != nil {
		return nil, errors.New("it is not a JSON object")
	}
	return *decoded.(*map[string]schema.Value), nil
}

func str(question map[string]schema.Value, name string) (string, error) {
	if question[name] == nil {
		return "", fmt.Errorf("%s is missing", name)
	}
	decoded, err := schema.TypeOf[string]().Decode(question[name])
	if err != nil || *decoded.(*string) == "" {
		return "", fmt.Errorf("%s is not a string", name)
	}
	return *decoded.(*string), nil
}

// short returns a tool's input, shortened to fit a line, and the names of the members that were cut, or * for
// the whole input.
func short(input schema.Value) (kept schema.Value, cut []string) {
	if len(input) <= longText {
		return input, nil
	}
	out := []byte{'{'}
	all, err := members(input)
	if err != nil {
		return digest(input), []string{"*"}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if len(value) > longText {
			value = shortText(value)
			cut = append(cut, name)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(schema.AppendString(out, name), ':'), value...)
	}
	if out = append(out, '}'); len(out) > longInput {
		return digest(input), []string{"*"}
	}
	return out, cut
}

// shortText returns the beginning of a string with its length and digest; for any other value it returns the digest.
func shortText(value schema.Value) schema.Value {
	decoded, err := schema.TypeOf[string]().Decode(value)
	if err != nil {
		return digest(value)
	}
	text := *decoded.(*string)
	head := text[:longText/2]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	return schema.AppendString(nil, fmt.Sprintf("%s… (%d bytes, SHA-256 %s)", head, len(text), sum([]byte(text))))
}

// digest returns an object with the length in bytes and the SHA-256 of a value.
func digest(value schema.Value) schema.Value {
	return fmt.Appendf(nil, `{"bytes":%d,"sha256":"%s"}`, len(value), sum(value))
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
