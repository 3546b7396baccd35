package memory_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestValuesComeBackAsWritten(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`null`, `true`, `""`, `[]`, `{}`, `0`, `-0`, `1.0`, `1E400`, `12345678901234567890`,
		`"\u0041\/\ud83d\ude00"`, `"line\nend"`, `{ "b" : 1 ,"a":	[ 1.50,{} ] }`, `"日本"`,
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			d := newDomain(t, nil)
			if got, err := run(t, d, 1, home, "Memory.Set", `{"key":"k","value":`+value+`}`); err != nil || got != `{"success":true}` {
				t.Fatalf("set: %s, %v", got, err)
			}
			if got, err := run(t, d, 1, home, "Memory.Get", `{"key":"/k"}`); err != nil || got != value {
				t.Errorf("get: %s, %v, want %s", got, err, value)
			}
		})
	}
}

func TestSetReplacesAndDeleteRemoves(t *testing.T) {
	t.Parallel()
	d := newDomain(t, nil)
	for _, step := range []struct{ typ, data, want, fault string }{
		{"Memory.Get", `{"key":"/notes/123"}`, "", "Key not found: /notes/123"},
		{"Memory.Delete", `{"key":"notes/123"}`, "", "Key not found: notes/123"},
		{"Memory.Set", `{"key":"notes/123","value":"one"}`, `{"success":true}`, ""},
		{"Memory.Set", `{"key":"/notes/123","value":"three"}`, `{"success":true}`, ""},
		{"Memory.Get", `{"key":"notes/123"}`, `"three"`, ""},
		{"Memory.Get", `{"key":"proc/meminfo"}`, `{"keys":1,"bytes":16}`, ""},
		{"Memory.Get", `{"key":"notes"}`, "", "Key not found: notes"},
		{"Memory.Set", `{"key":"notes/124","value":1}`, `{"success":true}`, ""},
		{"Memory.Delete", `{"key":"/notes/123"}`, `{"success":true}`, ""},
		{"Memory.Get", `{"key":"notes/123"}`, "", "Key not found: notes/123"},
		{"Memory.Get", `{"key":"proc/meminfo"}`, `{"keys":1,"bytes":10}`, ""},
		{"Memory.Delete", `{"key":"notes/124"}`, `{"success":true}`, ""},
		{"Memory.Get", `{"key":"proc/meminfo"}`, `{"keys":0,"bytes":0}`, ""},
	} {
		got, err := run(t, d, 3, home, step.typ, step.data)
		if step.fault != "" {
			domaintest.WantError(t, err, fault.NotFound, step.fault)
		} else if err != nil || got != step.want {
			t.Errorf("%s %s: %s, %v, want %s", step.typ, step.data, got, err, step.want)
		}
	}
	if rest := domaintest.Snapshot(t, d); len(rest) != 0 {
		t.Errorf("an emptied store leaves %q", rest)
	}
}

func TestVaultTakesSealedValuesOnly(t *testing.T) {
	t.Parallel()
	for value, sealed := range map[string]bool{
		`"pwenc:v1:abc"`:                  true,
		`"pwenc:v1:"`:                     true,
		`"\u0070wenc:v1:abc"`:             true,
		`"pwenc\u003av1:abc"`:             true,
		`"pwenc:v2:abc"`:                  false,
		`"pwenc:v1"`:                      false,
		`" pwenc:v1:abc"`:                 false,
		`"hunter2"`:                       false,
		`["pwenc:v1:abc"]`:                false,
		`{"pwenc:v1:abc":"pwenc:v1:abc"}`: false,
		`null`:                            false,
		`1`:                               false,
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			d := newDomain(t, nil)
			_, err := run(t, d, 1, home, "Memory.Set", `{"key":"/vault/api","value":`+value+`}`)
			if sealed {
				if err != nil {
					t.Error(err)
				}
				return
			}
			domaintest.WantError(t, err, fault.InvalidInput, "Invalid input: value must be a string that begins with pwenc:v1: to be stored under /vault/api:"+
				" vault/ holds sealed values only; seal it first, or store it under another key")
			if _, err := run(t, d, 1, home, "Memory.Set", `{"key":"vaults/api","value":`+value+`}`); err != nil {
				t.Errorf("outside of vault/: %v", err)
			}
		})
	}
}

func TestOriginsAreApart(t *testing.T) {
	t.Parallel()
	d := newDomain(t, domaintest.Table{process(1, home), process(2, other)})
	steps := []struct {
		origin, typ, data, want string
		class                   fault.Kind
	}{
		{home, "Memory.Set", `{"key":"a/1","value":"mine"}`, `{"success":true}`, 0},
		{home, "Memory.Set", `{"key":"a/3","value":"mine"}`, `{"success":true}`, 0},
		{other, "Memory.Get", `{"key":"a/1"}`, "", fault.NotFound},
		{other, "Memory.Delete", `{"key":"a/1"}`, "", fault.NotFound},
		{other, "Memory.List", `{}`, `{"keys":[]}`, 0},
		{other, "Memory.Get", `{"key":"proc/meminfo"}`, `{"keys":0,"bytes":0}`, 0},
		{other, "Memory.Set", `{"key":"a/2","value":"theirs"}`, `{"success":true}`, 0},
		{home, "Memory.List", `{"limit":1}`, `{"keys":["/a/1"],"next":"/a/1"}`, 0},
		{home, "Memory.List", `{"limit":1,"cursor":"/a/1"}`, `{"keys":["/a/3"]}`, 0},
		{other, "Memory.List", `{"cursor":"/a/1"}`, `{"keys":["/a/2"]}`, 0},
		{other, "Memory.Delete", `{"key":"a/2"}`, `{"success":true}`, 0},
		{home, "Memory.Get", `{"key":"a/1"}`, `"mine"`, 0},
		{home, "Memory.Get", `{"key":"proc/meminfo"}`, `{"keys":2,"bytes":18}`, 0},
	}
	for _, s := range steps {
		pid := int64(1)
		if s.origin == other {
			pid = 2
		}
		got, err := run(t, d, pid, s.origin, s.typ, s.data)
		if s.class != 0 {
			if err == nil || fault.Of(err).Kind != s.class {
				t.Errorf("%s %s %s: %v, want class %d", s.origin, s.typ, s.data, err, s.class)
			}
		} else if err != nil || got != s.want {
			t.Errorf("%s %s %s: %s, %v, want %s", s.origin, s.typ, s.data, got, err, s.want)
		}
	}
}

func TestNewRefusesParameters(t *testing.T) {
	t.Parallel()
	for _, block := range []string{``, `null`, `[]`, `"x"`, `{`, `{"a":1,"a":2}`} {
		if _, err := memory.New(schema.Value(block), domaintest.Table{}); !errors.Is(err, memory.ErrParameters) {
			t.Errorf("%q: %v", block, err)
		}
	}
}

func TestForeignCallIsRefused(t *testing.T) {
	t.Parallel()
	d := newDomain(t, nil)
	call := &kernel.Call{Request: kernel.Request{Input: &schema.EchoInput{}, Message: schema.Message{Type: "Syscall.Echo"}}}
	if _, err := d.Decide(call); err == nil || fault.Of(err).Kind != fault.Internal {
		t.Errorf("error %v", err)
	}
}

// TestFaults: a program decides by the id, and a person sees which key it was.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ, data string
		id        fault.ID
		key       string
	}{
		{"Memory.Get", `{"key":"notes/1"}`, fault.MemoryNotFound, "/notes/1"},
		{"Memory.Delete", `{"key":"/notes/1"}`, fault.MemoryNotFound, "/notes/1"},
		{"Memory.Get", `{"key":"proc/9/status"}`, fault.MemoryNotFound, "/proc/9/status"},
		{"Memory.Set", `{"key":"a//b","value":1}`, fault.MemoryBadKey, ""},
		{"Memory.Set", `{"key":"proc/x","value":1}`, fault.MemoryReadOnly, "/proc/x"},
		{"Memory.Delete", `{"key":"/proc/x"}`, fault.MemoryReadOnly, "/proc/x"},
		{"Memory.Set", `{"key":"vault/x","value":"hunter2"}`, fault.MemoryUnsealed, "/vault/x"},
	} {
		_, err := run(t, newDomain(t, nil), 1, home, tt.typ, tt.data)
		var details []fault.Detail
		if tt.key != "" {
			details = []fault.Detail{{Name: "key", Value: tt.key}}
		}
		if !errors.Is(err, tt.id) || !slices.Equal(domaintest.Shown(t, err).Details, details) {
			t.Errorf("%s %s: %v with %v, want %s with %v", tt.typ, tt.data, err, domaintest.Shown(t, err).Details, tt.id, details)
		}
	}
}
