package main_test

import (
	"maps"
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

func TestQuotasOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		given string // separated by spaces
		want  map[string]float64
		fails bool
	}{
		{"", nil, false},
		{"gpu=2", map[string]float64{"gpu": 2}, false},
		{"gpu=0 tokens=1e3 a=0.5", map[string]float64{"gpu": 0, "tokens": 1000, "a": 0.5}, false},
		{"gpu", nil, true},
		{"=1", nil, true},
		{"gpu=", nil, true},
		{"gpu=-1", nil, true},
		{"gpu=inf", nil, true},
		{"gpu=1e999", nil, true},
		{"gpu=0x10", nil, true},
		{"gpu=1 gpu=2", nil, true},
		{"a=b=1", nil, true},
	} {
		got, err := pwos.QuotasOf(strings.Fields(tt.given))
		if (err != nil) != tt.fails || !maps.Equal(got, tt.want) {
			t.Errorf("%q: %v, %v, want %v", tt.given, got, err, tt.want)
		}
	}
}
