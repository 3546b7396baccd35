package schema_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// shelf stores the values of references.
type shelf map[string][]byte

func (s shelf) put(content []byte, _ bool) (schema.BlobPointer, error) {
	at := "/" + strconv.Itoa(len(s))
	s[at] = append([]byte(nil), content...)
	return schema.BlobPointer{Scheme: "file", Path: at}, nil
}

func (s shelf) get(p schema.BlobPointer) ([]byte, error) {
	content, ok := s[p.Path]
	if !ok {
		return nil, errors.New("gone")
	}
	return content, nil
}

type shelved struct {
	A schema.Value `json:"a,omitzero"`
	B schema.Value `json:"b,omitzero"`
}

// TestReferAndResolve checks that Resolve returns a stored value unchanged, and that the rest of the data fits.
func TestReferAndResolve(t *testing.T) {
	t.Parallel()
	types := []*schema.Type{schema.TypeOf[shelved](), schema.TypeOf[schema.Value]()}
	value := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return `"` + strings.Repeat(`é\n`, n) + `"` }),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return `[1.50` + strings.Repeat(`,{"x":null}`, n) + `]` }),
		rapid.SampledFrom([]string{"null", "1", `""`, `{"aRef":{"scheme":"file","path":"/0"}}`}),
	)
	rapid.Check(t, func(t *rapid.T) {
		s := shelf{}
		typ := rapid.SampledFrom(types).Draw(t, "type")
		data := `{"a":` + value.Draw(t, "a") + `,"b":` + value.Draw(t, "b") + `}`
		room := rapid.IntRange(700, 6000).Draw(t, "room")
		short, refs, err := schema.Refer(typ, []byte(data), room, s.put)
		testkit.Must(t, err)
		if len(short) > room || !schema.Valid(short) || !schema.Valid(refs) {
			t.Fatalf("%d bytes of %d, %s", len(short), room, refs)
		}
		if got := string(schema.Resolve(typ, short, refs, s.get)); got != data && unescaped(got) != unescaped(data) {
			t.Fatalf("came back as %.300s, was %.300s", got, data)
		}
		if got := string(schema.Resolve(typ, short, refs, shelf{}.get)); got != string(short) {
			t.Fatalf("data with references that cannot be read became %s", got)
		}
	})
}

// unescaped returns s without the one escape that a stored text loses.
func unescaped(s string) string { return strings.ReplaceAll(s, `\u000a`, `\n`) }

// TestResolveTrustsNobody checks that Resolve replaces only the references that refs or the type of the reply has.
func TestResolveTrustsNobody(t *testing.T) {
	t.Parallel()
	s := shelf{"/0": []byte("secret")}
	data := `{"aRef":{"scheme":"file","path":"/0"},"valueRef":{"scheme":"file","path":"/0"}}`
	for _, refs := range []string{"", `{"b":"text"}`, `{}`, `null`, `nonsense`} {
		for _, typ := range []*schema.Type{schema.TypeOf[shelved](), schema.TypeOf[schema.Value]()} {
			if got := string(schema.Resolve(typ, []byte(data), []byte(refs), s.get)); got != data {
				t.Errorf("refs %q: resolved to %s", refs, got)
			}
		}
	}
	row, _ := schema.Lookup("Http.Fetch") // the kernel makes its data
	if got := string(schema.Resolve(row.Output(), []byte(`{"status":200,"bodyRef":{"scheme":"file","path":"/0"}}`), nil, s.get)); got != `{"status":200,"body":"secret"}` {
		t.Errorf("resolved to %s", got)
	}
}

// TestInline checks that content replaces the reference if it is a valid value or a text.
func TestInline(t *testing.T) {
	t.Parallel()
	const data = `{"key":"k","valueRef":{"scheme":"file","path":"/x"},"pid":1}`
	for _, tt := range []struct {
		content string
		text    bool
		want    string // empty: refused
	}{
		{"\n{\r\n \"a\": 1.50}\n", false, `{   "a": 1.50}`},
		{" 12 ", false, "12"},
		{" 12 ", true, `" 12 "`},
		{`"said"`, false, `"said"`},
		{`"said"`, true, `"\"said\""`},
		{"<html>\n", false, `"<html>\n"`},
		{"1 2", false, `"1 2"`},
		{"", false, `""`},
		{`{"a":1`, true, `"{\"a\":1"`},
		{`{"a":1`, false, ""},
		{` {"a":1,"a":2}`, false, ""},
		{"[", false, ""},
		{strings.Repeat("[", 63) + strings.Repeat("]", 63), false, ""},
		{"\"\xff\"", false, ""},
		{"\xff", true, ""},
	} {
		got, fault := schema.Inline([]byte(data), "value", []byte(tt.content), tt.text)
		if want := `{"key":"k","value":` + tt.want + `,"pid":1}`; tt.want != "" && (fault != nil || string(got) != want) {
			t.Errorf("%.20q, %v: %s, %v, want %s", tt.content, tt.text, got, fault, want)
		}
		if tt.want == "" && (fault == nil || fault.Field != "valueRef") {
			t.Errorf("%.20q, %v: %v", tt.content, tt.text, fault)
		}
	}
}
