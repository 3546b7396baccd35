package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/promptware-os/pwos/schema/fault"
)

// Error says what is wrong with the configuration, and where: a caller may still name another place (Key, File). It is a
// fault.ConfigInvalid.
type Error struct {
	File string // "" where it is not from a file
	Line int    // of the text, from 1; 0 where it is not from a text
	Key  string // "" where no single setting is at fault
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

// explain puts a place to what the TOML library found.
func explain(err error) *Error {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		first := &unknown.Errors[0]
		line, _ := first.Position()
		return noSuch(join(first.Key()), line)
	}
	wrong := &Error{Text: strings.TrimPrefix(err.Error(), "toml: ")}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		wrong.Line, _ = at.Position()
		wrong.Key = join(at.Key())
	}
	if strings.HasPrefix(wrong.Text, "cannot decode TOML ") {
		wrong.Text = "takes " + taken(wrong.Text[strings.LastIndexByte(wrong.Text, ' ')+1:])
	} else if level, ok := strings.CutPrefix(wrong.Text, "slog: level string "); ok {
		wrong.Text = strings.TrimSuffix(level, ": unknown name") + " must be debug, info, warn or error"
	}
	return wrong
}

// taken is what a setting of a Go type takes, in the words of who writes the file.
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
