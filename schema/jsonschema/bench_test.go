package jsonschema_test

import (
	"strings"
	"testing"
)

// BenchmarkCheck measures the check of usual data and of data of the longest line.
func BenchmarkCheck(b *testing.B) {
	s := compile(b, `{"type":"object","properties":{"path":{"type":"string","minLength":1},"list":{"type":"array","items":{"type":"number"}}},"required":["path"],"additionalProperties":false}`)
	for name, data := range map[string]string{
		"usual": `{"path":"notes/1","list":[1,2,3]}`,
		"1MB":   `{"path":"notes/1","list":[` + strings.Repeat("1,", 500_000) + `1]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if m := s.Check([]byte(data)); m != nil {
					b.Fatal(m)
				}
			}
		})
	}
}
