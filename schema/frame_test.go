package schema_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

var dialects = []schema.Dialect{schema.OsMessage, schema.OsEvent}

// metadata is the valid metadata of frames in tests that are not about metadata.
const metadata = `{"id":"m-1","timestamp":1735000000000,"correlation":"flow-1"}`

// in replaces words of text by those of dialect d: @kind, @type and @data by its member names, @reply by its word for a
// successful answer.
func in(d schema.Dialect, text string) string {
	words := []string{"@kind", "kind", "@type", "type", "@data", "data", "@reply", "reply"}
	if d == schema.OsEvent {
		words = []string{"@kind", "type", "@type", "name", "@data", "payload", "@reply", "response"}
	}
	return strings.NewReplacer(words...).Replace(text)
}

// ping returns a valid frame with the given data.
func ping(d schema.Dialect, data string) string {
	return in(d, `{"@kind":"query","@type":"Syscall.Ping","@data":`) + data + `,"metadata":` + metadata + `}`
}

// eachDialect runs a test in both dialects.
func eachDialect(t *testing.T, name string, test func(t *testing.T, d schema.Dialect)) {
	t.Helper()
	for _, d := range dialects {
		t.Run(d.String()+"/"+name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

func decode(t *testing.T, frame string, d schema.Dialect) schema.Message {
	t.Helper()
	m, err := schema.Decode([]byte(frame), d)
	if err != nil {
		t.Fatalf("Decode(%q): %v", frame, err)
	}
	return m
}
