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

	"github.com/promptware-os/pwos/internal/tomlname"
	"github.com/promptware-os/pwos/schema/fault"
)

// Load reads the file at path into c. A missing file sets nothing; if must is true, it is an error. Environment variables
// take precedence over the file's directories.
func (c *Config) Load(path string, must bool, getenv func(string) string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	before := *c
	if wrong := c.decode(text); wrong != nil {
		wrong.File = path
		return wrong
	}
	old := before.settings()
	for i, s := range c.settings() {
		if s.env != "" && getenv(s.env) != "" {
			*s.at.(*string) = *old[i].at.(*string)
		}
	}
	return nil
}

// Parse decodes TOML into c. If it returns an *Error, c is unchanged. An unknown name is an error, which has its line and
// lists the existing names.
func (c *Config) Parse(text []byte) error {
	if wrong := c.decode(text); wrong != nil {
		return wrong
	}
	return nil
}

// Set sets one setting, which takes a string, as a file would. Its error is an *Error without a line.
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
	if wrong := c.decode(text); wrong != nil {
		wrong.Line = 0
		return wrong
	}
	return nil
}

func (c *Config) decode(text []byte) *Error {
	next := *c
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&next); err != nil {
		return explain(err)
	}
	lines, wrong := inspect(text)
	if wrong != nil {
		return wrong
	}
	for _, wrong := range next.faults() {
		if line, ok := lines[wrong.Key]; ok { // otherwise it is from another source
			wrong.Line = line
			return wrong
		}
	}
	*c = next
	return nil
}

// Error is a fault of the configuration, with its place. A caller may set Key and File. It unwraps to fault.ConfigInvalid.
type Error struct {
	File string // "" if it is not from a file
	Line int    // of the text, from 1; 0 if it is not from a text
	Key  string // "" if no single setting is wrong
	Text string
}

// Error names file, line, setting and what is wrong with it.
func (e *Error) Error() string {
	var at string
	switch {
	case e.File != "" && e.Line > 0:
		at = fmt.Sprintf("configuration %s:%d: ", e.File, e.Line)
	case e.File != "":
		at = fmt.Sprintf("configuration %s: ", e.File)
	case e.Line > 0:
		at = fmt.Sprintf("line %d: ", e.Line)
	}
	if e.Key != "" {
		at += e.Key + ": "
	}
	return at + e.Text
}

// Unwrap returns the id.
func (*Error) Unwrap() error { return fault.ConfigInvalid }

// explain adds a place to an error of the TOML library.
func explain(err error) *Error {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		first := &unknown.Errors[0]
		line, _ := first.Position()
		return noSuch(tomlname.Join(first.Key()), line)
	}
	wrong := &Error{Text: strings.TrimPrefix(err.Error(), "toml: ")}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		wrong.Line, _ = at.Position()
		wrong.Key = tomlname.Join(at.Key())
	}
	if strings.HasPrefix(wrong.Text, "cannot decode TOML ") {
		wrong.Text = "takes " + taken(wrong.Text[strings.LastIndexByte(wrong.Text, ' ')+1:])
	} else if level, ok := strings.CutPrefix(wrong.Text, "slog: level string "); ok {
		wrong.Text = strings.TrimSuffix(level, ": unknown name") + " must be debug, info, warn or error"
	}
	return wrong
}

// taken describes the values of a Go type for the author of the file.
func taken(goType string) string {
	switch goType {
	case "int":
		return "an integer"
	case "float64":
		return "a number"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "[]string":
		return "a list of strings"
	}
	if strings.HasPrefix(goType, "[]") {
		return "a list of tables"
	}
	return "a table"
}
