package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
)

// buildData makes a message's data of --data and key=value arguments. Its errors are wrong usage.
func buildData(base string, members []string) ([]byte, error) {
	data := bytes.TrimSpace([]byte(base))
	if len(data) == 0 {
		data = []byte("{}")
	}
	if !schema.Valid(data) {
		return nil, errors.New("--data is not one strict JSON value")
	}
	if len(members) == 0 {
		return data, nil
	}
	taken, ok := objectOf(data)
	if !ok {
		return nil, errors.New("--data must be a JSON object where key=value is to be added to it")
	}
	data = bytes.TrimSpace(data[:len(data)-1]) // without its closing brace
	for _, member := range members {
		name, value, found := strings.Cut(member, "=")
		switch _, twice := taken[name]; {
		case !found || name == "":
			return nil, fmt.Errorf("%q is not of the form key=value", member)
		case !utf8.ValidString(member):
			return nil, fmt.Errorf("%q is not UTF-8", member)
		case twice:
			return nil, fmt.Errorf("%s is given twice", name)
		}
		if len(taken) > 0 {
			data = append(data, ',')
		}
		taken[name] = schema.Value(value)
		data = append(schema.AppendString(data, name), ':')
		data = appendArgument(data, value)
	}
	return append(data, '}'), nil
}

// appendArgument appends the value of a key=value: as it is where it is JSON, else as a string.
func appendArgument(dst []byte, value string) []byte {
	if schema.Valid([]byte(value)) {
		return append(dst, value...)
	}
	return schema.AppendString(dst, value)
}
