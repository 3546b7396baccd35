package delta_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestMergePatch has the examples of RFC 7386, appendix A, each below a member t. The state never has a null outside
// of an array, so targets lack it.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ target, patch, result string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, ``},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},

		{`{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":null,"e":{"f":null}}}}`, `{"a":{"b":{"d":2,"e":{}}}}`},
		{`[null,{"a":null}]`, `[ null , 1.50 ]`, `[ null , 1.50 ]`},
		{`{"a":1}`, `{ "b" : {"c":	2e1} }`, `{"a":1,"b":{"c":2e1}}`},
		{`{"a":1}`, `{"a":{}}`, `{"a":{}}`},
		{`{"a":1}`, `{}`, `{"a":1}`},
		{`{"\u0061":1}`, `{"a":"\u0062"}`, `{"a":"\u0062"}`},
		{`{"z":1,"y":2,"\"":3}`, `{"x":"null"}`, `{"\"":3,"x":"null","y":2,"z":1}`},
		{`12345678901234567890`, `1E400`, `1E400`},
	} {
		t.Run(tc.patch, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			s.want(1, "Syscall.CommitDelta", `{"changes":{"t":`+tc.target+`}}`, `{"agent_id":"ada","delta_seq":1}`)
			s.want(1, "Syscall.CommitDelta", `{"changes":{"t":`+tc.patch+`}}`, `{"agent_id":"ada","delta_seq":2}`)
			state := `{}`
			if tc.result != "" {
				state = `{"t":` + tc.result + `}`
			}
			s.want(1, "Syscall.GetState", `{}`, s.answer(1, `{"state":`+state+`,"resources":{},"relationships":{},"deltas":2,"violations":0}`))
		})
	}
}

// TestStateFitsAnAnswer commits changes with the deepest nesting that a request allows: the answer has one level more
// around them.
func TestStateFitsAnAnswer(t *testing.T) {
	t.Parallel()
	const around = 4 // the objects around a change in an answer: frame, data, memory, state
	s := newShell(t)
	deepest := strings.Repeat("[", schema.MaxDepth-around) + strings.Repeat("]", schema.MaxDepth-around)
	s.want(1, "Syscall.CommitDelta", `{"changes":{"a":`+deepest+`}}`, `{"agent_id":"ada","delta_seq":1}`)
	answer, err := s.run(1, "Syscall.GetState", `{}`)
	if err != nil || !schema.Valid([]byte(`{"data":`+answer+`}`)) {
		t.Errorf("%s, %v", answer, err)
	}
	s.fails(1, "Syscall.CommitDelta", `{"changes":{"a":[`+deepest+`]}}`, fault.InvalidInput,
		fmt.Sprintf("Invalid input: changes must be nested less deeply: Syscall.GetState must be able to return the state within %d levels", schema.MaxDepth))
}
