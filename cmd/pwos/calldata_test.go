package main_test

import (
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/schema"
)

func TestBuildData(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		base    string
		members string // separated by |
		want    string // empty: refused
	}{
		{"", "", `{}`},
		{"null", "", `null`},
		{` [1, 2] `, "", `[1, 2]`},
		{`{"a":1e400}`, "", `{"a":1e400}`},
		{"", "a=1|b=x|c=true|d=null|e=[]|f={}", `{"a":1,"b":"x","c":true,"d":null,"e":[],"f":{}}`},
		{"", `a="1"|b=01|c=|d=1 2|e==`, `{"a":"1","b":"01","c":"","d":"1 2","e":"="}`},
		{"", "a\"b=ü\n", `{"a\"b":"ü\n"}`},
		{` { "a" : 1 } `, "b=2", `{ "a" : 1,"b":2}`},
		{`{}`, "b=2", `{"b":2}`},
		{"", "a", ""},
		{"", "=1", ""},
		{"", "a=1|a=2", ""},
		{`{"a":1}`, "a=2", ""},
		{`{"a":1`, "", ""},
		{`{"a":1,"a":2}`, "", ""},
		{`null`, "a=1", ""},
		{`[]`, "a=1", ""},
		{"", "a=\xff", ""},
	} {
		var members []string
		if tt.members != "" {
			members = strings.Split(tt.members, "|")
		}
		got, err := pwos.BuildData(tt.base, members)
		if string(got) != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("--data %q with %q: %s, %v, want %s", tt.base, members, got, err, tt.want)
		}
	}
}

// FuzzBuildData checks that any input gives valid JSON with every member, or an error.
func FuzzBuildData(f *testing.F) {
	f.Add("", "a", "1")
	f.Add(`{"a":{"b":[]}}`, "c", `"x"`)
	f.Add(" {\n} ", "\x00", "{")
	f.Add(`{"a":1}`, "a", "\xff")
	f.Fuzz(func(t *testing.T, base, name, value string) {
		data, err := pwos.BuildData(base, []string{name + "=" + value})
		if err != nil {
			return
		}
		if !schema.Valid(data) {
			t.Fatalf("%q with %q=%q makes %q, which is not valid", base, name, value, data)
		}
		members, fault := schema.TypeOf[map[string]schema.Value]().Decode(data)
		if fault != nil {
			t.Fatalf("%q is no object: %v", data, fault)
		}
		key, _, _ := strings.Cut(name+"="+value, "=")
		if _, ok := (*members.(*map[string]schema.Value))[key]; !ok {
			t.Fatalf("%q has no member %q", data, key)
		}
	})
}
