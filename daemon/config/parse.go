package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Load reads the file at path over c. A file that is not there sets nothing, unless must says that somebody named it. The
// environment comes before the file: a directory that a variable names stays.
func (c *Config) Load(path string, must bool, getenv func(string) string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	before := *c
	if wrong := c.parse(text); wrong != nil {
		wrong.File = path
		return wrong
	}
	if getenv("PWOS_RUNTIME_DIR") != "" {
		c.RuntimeDir = before.RuntimeDir
	}
	if getenv("PWOS_STATE_DIR") != "" {
		c.StateDir = before.StateDir
	}
	return nil
}

// Parse reads TOML over c, all of it or, with an *Error, nothing. What it does not know is an error, which says where it
// stands and what there is.
func (c *Config) Parse(text []byte) error {
	if wrong := c.parse(text); wrong != nil {
		return wrong
	}
	return nil
}

// Set sets the one setting key, which takes a string, as a file would. Its error is an *Error without a line.
func (c *Config) Set(key, value string) error {
	var tree any = value
	words := strings.Split(key, ".")
	for _, word := range slices.Backward(words) {
		tree = map[string]any{word: tree}
	}
	text, err := toml.Marshal(tree)
	if err != nil {
		return &Error{Key: key, Text: err.Error()}
	}
	if wrong := c.parse(text); wrong != nil {
		wrong.Line = 0
		return wrong
	}
	return nil
}

func (c *Config) parse(text []byte) *Error {
	next := *c
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&next); err != nil {
		return explain(err)
	}
	lines, wrong := inspect(text)
	if wrong != nil {
		return wrong
	}
	for _, wrong := range next.faults() {
		if line, ok := lines[wrong.Key]; ok { // else it is not this text's
			wrong.Line = line
			return wrong
		}
	}
	*c = next
	return nil
}
