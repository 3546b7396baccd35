package memory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestCompareAndSet: the stored value decides, by the rule in the syscall's description.
func TestCompareAndSet(t *testing.T) {
	t.Parallel()
	const absent = ""
	for _, tt := range []struct {
		stored, expected string
		want             bool
	}{
		{absent, absent, true},
		{absent, `null`, false},
		{absent, `1`, false},
		{`null`, `null`, true},
		{`null`, absent, false},
		{`1`, absent, false},
		{`1`, `1`, true},
		{`1`, ` 1 `, true},
		{`1`, `2`, false},
		{`1`, `1.0`, false}, // numbers are compared as they are written
		{`12345678901234567890`, `12345678901234567891`, false},
		{`"a"`, `"\u0061"`, true},
		{`"\/"`, `"/"`, true},
		{`"a"`, `"A"`, false},
		{`{"a":1,"b":[true,{"c":null,"d":"x"}]}`, `{ "b": [true, {"d":"x", "c":null}], "a": 1 }`, true},
		{`{"a":1,"b":2}`, `{"a":2,"b":1}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{}`, `[]`, false},
		{`"1"`, `1`, false},
	} {
		t.Run(tt.stored+" expected "+tt.expected, func(t *testing.T) {
			t.Parallel()
			d, before := newDomain(t, nil), "Key not found: /k"
			if tt.stored != absent {
				domaintest.Apply(d, request(t, 1, home, "Memory.Set", `{"key":"k","value":`+tt.stored+`}`), nil)
				before = tt.stored
			}
			want(t, d, other, "Memory.CompareAndSet", `{"key":"k","value":"theirs"}`, `{"success":true}`) // the same key of another origin
			data := `{"key":"/k","value":"new"`
			if tt.expected != absent {
				data += `,"expected":` + tt.expected
			}
			got, err := run(t, d, 1, home, "Memory.CompareAndSet", data+"}")
			if tt.want {
				if err != nil || got != `{"success":true}` {
					t.Errorf("%s, %v", got, err)
				}
				want(t, d, home, "Memory.Get", `{"key":"/k"}`, `"new"`)
				return
			}
			shown := domaintest.Shown(t, err)
			if !errors.Is(err, fault.MemoryChanged) || shown.Field != "expected" || len(shown.Details) != 1 || shown.Details[0].Value != "/k" {
				t.Errorf("%v with %v", err, shown.Details)
			}
			want(t, d, home, "Memory.Get", `{"key":"/k"}`, before)
		})
	}
}

// TestCompareAndSetKeepsTheRulesOfSet: what Memory.Set refuses is refused, whatever the expected value.
func TestCompareAndSetKeepsTheRulesOfSet(t *testing.T) {
	t.Parallel()
	for data, id := range map[string]fault.ID{
		`{"key":"a//b","value":1}`:                                    fault.MemoryBadKey,
		`{"key":"a\u202eb","value":1}`:                                fault.WireInvalidInput,
		`{"key":"proc/x","value":1}`:                                  fault.MemoryReadOnly,
		`{"key":"proc/meminfo","value":1,"expected":{}}`:              fault.MemoryReadOnly,
		`{"key":"vault/x","value":"hunter2"}`:                         fault.MemoryUnsealed,
		`{"key":"vault/x","value":"pwenc:v1:a","expected":"hunter2"}`: fault.MemoryChanged,
	} {
		_, err := run(t, newDomain(t, nil), 1, home, "Memory.CompareAndSet", data)
		if !errors.Is(err, id) {
			t.Errorf("%s: %v, want %s", data, err, id)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the secret: %v", data, err)
		}
	}
}

// TestRefusedCompareAndSetIsWithheld: the journal has neither value of a refused write to vault/.
func TestRefusedCompareAndSetIsWithheld(t *testing.T) {
	t.Parallel()
	const data = `{"key":"vault/x","expected":"hunter1","value":"hunter2"}`
	row := schema.MemoryCompareAndSet
	in, err := row.Input().Decode([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(row.Input().Redact([]byte(data), in, true)); strings.Contains(got, "hunter") {
		t.Errorf("the journal has %s", got)
	}
	if got := string(row.Input().Redact([]byte(data), in, false)); got != data {
		t.Errorf("the journal has %s of a write that is applied again at a start", got)
	}
}
