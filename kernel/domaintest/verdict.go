package domaintest

import (
	"bytes"
	"errors"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// WantError expects an error of this class and text.
func WantError(t TB, err error, class fault.Kind, message string) {
	t.Helper()
	shown, ok := errors.AsType[*fault.Fault](err)
	if !ok || shown.Kind != class || shown.Text() != message {
		t.Errorf("error %v, want class %d: %s", err, class, message)
	}
}

// Shown returns the error that a caller sees.
func Shown(t TB, err error) *fault.Fault {
	t.Helper()
	shown, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		t.Fatalf("error %v, which no caller is shown", err)
	}
	return shown
}

// outputs returns the schema of each row's answers, by type.
var outputs = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	all := map[string]*jsonschema.Schema{}
	for _, row := range schema.Syscalls() {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(row.Output().AppendJSONSchema(nil)))
		if err != nil {
			return nil, err
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("output.json", doc); err != nil {
			return nil, err
		}
		if all[row.Type], err = c.Compile("output.json"); err != nil {
			return nil, err
		}
	}
	return all, nil
})

// validate checks an answer against the JSON Schema of its row with an independent implementation.
func validate(t TB, row *schema.Syscall, data []byte) {
	t.Helper()
	known, err := outputs()
	if err != nil {
		t.Fatal(err)
	}
	s, ok := known[row.Type]
	if !ok {
		t.Fatalf("%s is no syscall of the table", row.Type)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s answers no JSON: %v: %s", row.Type, err, data)
	}
	if err := s.Validate(value); err != nil {
		t.Fatalf("%s answers %s: %v", row.Type, data, err)
	}
}
