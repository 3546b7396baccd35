package client_test

import (
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// FuzzKindOf: the prefix of a frame and its decoding give the same kind.
func FuzzKindOf(f *testing.F) {
	for _, line := range []string{
		`{"kind":"reply","type":"A.B","data":1,"metadata":{"id":"1","timestamp":1}}`,
		`{"kind":"error","type":"A.B","data":1,"metadata":{"id":"1","timestamp":1}}`,
		`{"type":"response","name":"A.B","payload":1}`,
		`{"type":"error","name":"A.B","payload":1}`,
		`{"type":"error","name":"A.B","payload":1,"kind":"reply","data":1,"metadata":{"id":"1","timestamp":1}}`,
		` {"kind":"reply"}`,
		`{"kind":"event","type":"A.B","data":1,"metadata":{"id":"1","timestamp":1}}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		m, fault := schema.Decode([]byte(line), schema.OsMessage)
		if got := client.KindOf([]byte(line)); fault == nil && got != m.Kind {
			t.Errorf("%s is a %v, want a %v", line, got, m.Kind)
		}
	})
}
