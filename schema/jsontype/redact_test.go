package jsontype_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema/jsontype"
)

type keptLeaf struct {
	Shown string `json:"shown,omitzero" keep:"always"`
	Key   string `json:"key,omitzero" keep:"never"`
	New   string `json:"new,omitzero"`
}

type keptShort struct {
	Level string `json:"level,omitzero" keep:"never"`
	Word  string `json:"word,omitzero" keep:"always"`
}

type keptCommon struct {
	At int64 `json:"at,omitzero" keep:"always"`
}

type keptTree struct {
	keptCommon
	Text    string              `json:"text,omitzero" keep:"always"`
	Value   jsontype.Value      `json:"value,omitzero" keep:"applied"`
	Leaf    *keptLeaf           `json:"leaf,omitzero" keep:"always"`
	Hidden  *keptLeaf           `json:"hidden,omitzero" keep:"never"`
	List    []keptLeaf          `json:"list,omitzero" keep:"always"`
	Names   map[string]keptLeaf `json:"names,omitzero" keep:"always"`
	Rows    [][]keptLeaf        `json:"rows,omitzero" keep:"always"`
	Short   *keptShort          `json:"short,omitzero" short:"level" keep:"always"`
	URL     string              `json:"url,omitzero" keep:"url"`
	Headers map[string]string   `json:"headers,omitzero" keep:"headers"`
	Argv    []string            `json:"argv,omitzero" keep:"arguments"`
}

// TestRedact checks that the journal has only the values that tags keep, at any depth, and that all other bytes are unchanged. A second
// Redact changes nothing, so that recovery computes the same hash.
func TestRedact(t *testing.T) {
	t.Parallel()
	tree := jsontype.Of[keptTree]()
	for _, tt := range []struct{ data, applied, failed string }{
		{`null`, `null`, `null`},
		{`{ "text" : "a","at":1 }`, `{ "text" : "a","at":1 }`, `{ "text" : "a","at":1 }`},
		{`{"value": [1] }`, `{"value": [1] }`, `{"value":"[redacted]"}`},
		{`{"value":null}`, `{"value":null}`, `{"value":"[redacted]"}`},
		{`{"leaf": {"shown" : "a"}}`, `{"leaf": {"shown" : "a"}}`, ``},
		{`{"leaf":{"shown":"a","key":"b","new":"c"}}`, `{"leaf":{"shown":"a","key":"[redacted]","new":"[redacted]"}}`, ``},
		{`{"leaf":{"k\u0065y":"b"}}`, `{"leaf":{"key":"[redacted]"}}`, ``},
		{`{"hidden":{"shown":"a"},"text":"b"}`, `{"hidden":"[redacted]","text":"b"}`, ``},
		{`{"list":[{"shown":"a"},{"key":"b"}]}`, `{"list":[{"shown":"a"},{"key":"[redacted]"}]}`, ``},
		{`{"list": [ {"shown":"a"} ]}`, `{"list": [ {"shown":"a"} ]}`, ``},
		{`{"names":{"a":{"new":"b"},"c":{}}}`, `{"names":{"a":{"new":"[redacted]"},"c":{}}}`, ``},
		{`{"rows":[[],[{"key":"a"}]]}`, `{"rows":[[],[{"key":"[redacted]"}]]}`, ``},
		{`{"short":"a"}`, `{"short":"[redacted]"}`, ``},
		{`{"short":{"word":"a","level":"b"}}`, `{"short":{"word":"a","level":"[redacted]"}}`, ``},
		{`{"argv": ["a", "--token=b"]}`, `{"argv":["a","--token=[redacted]"]}`, ``},
		{`{"argv": ["a","\u00e9"]}`, `{"argv": ["a","\u00e9"]}`, ``},
		{`{"argv":["` + strings.Repeat("x", 5000) + `","y"]}`, `{"argv":["` + strings.Repeat("x", 4096-2*16-len("…")) + `","…"]}`, ``},
		{`{"url":"https://me:pw@a/","headers":{"cookie":"a","b":"c"}}`, `{"url":"https://[redacted]@a/","headers":{"cookie":"[redacted]","b":"c"}}`, ``},
		{`{"leaf":"a","list":1,"names":[],"later":2}`, `{"leaf":"[redacted]","list":"[redacted]","names":"[redacted]","later":"[redacted]"}`, ``},
	} {
		if tt.failed == "" {
			tt.failed = tt.applied
		}
		for failed, want := range map[bool]string{false: tt.applied, true: tt.failed} {
			once := tree.Redact([]byte(tt.data), nil, failed)
			if twice := tree.Redact(once, nil, failed); string(once) != want || string(twice) != want {
				t.Errorf("%s, failed %t: got %s, then %s, want %s", tt.data, failed, once, twice, want)
			}
		}
	}
	const leaf, shown = `{"key":"a"}`, `{"key":"[redacted]"}`
	if got := string(jsontype.Of[[]keptLeaf]().Redact([]byte(`[`+leaf+`]`), nil, false)); got != `[`+shown+`]` {
		t.Errorf("a list: %s", got)
	}
	if got := string(jsontype.Of[keptInner]().Redact([]byte(`{"leaf":`+leaf+`}`), nil, false)); got != `{"leaf":`+shown+`}` {
		t.Errorf("nothing withheld but inside: %s", got)
	}
}

// TestUndecided checks the results of Undecided and Withheld.
func TestUndecided(t *testing.T) {
	t.Parallel()
	tree := jsontype.Of[keptTree]()
	want := []string{"leaf.new", "hidden.new", "list[].new", "names.*.new", "rows[][].new"}
	if got := tree.Undecided(); !slices.Equal(got, want) {
		t.Errorf("undecided %q, want %q", got, want)
	}
	want = []string{
		"leaf.key", "leaf.new", "hidden", "hidden.key", "hidden.new", "list[].key", "list[].new", "names.*.key", "names.*.new",
		"rows[][].key", "rows[][].new", "short.level", "url", "headers", "argv",
	}
	if got := tree.Withheld(); !slices.Equal(got, want) {
		t.Errorf("withheld %q, want %q", got, want)
	}
	if got := jsontype.Of[keptCommon](); got.Undecided() != nil || got.Withheld() != nil {
		t.Errorf("undecided %q, withheld %q, want none", got.Undecided(), got.Withheld())
	}
}

type keptApplied struct {
	Value string `json:"value" keep:"applied"`
}

type keptNarrow struct {
	Open  bool   `json:"open,omitzero" keep:"always"`
	Value string `json:"value" keep:"applied"`
}

func (in *keptNarrow) Confidential() bool { return !in.Open }

type keptParts struct {
	URL string `json:"url" keep:"url"`
}

type keptInner struct {
	Leaf keptLeaf `json:"leaf" keep:"always"`
}

// TestWithholds checks that Withholds reports whether a whole member is withheld, and that Confidential can keep members of a failed
// call.
func TestWithholds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		typ             *jsontype.Type
		in              any
		applied, failed bool
	}{
		"applied":          {jsontype.Of[keptApplied](), &keptApplied{}, false, true},
		"confidential":     {jsontype.Of[keptNarrow](), &keptNarrow{}, false, true},
		"not confidential": {jsontype.Of[keptNarrow](), &keptNarrow{Open: true}, false, false},
		"part":             {jsontype.Of[keptParts](), &keptParts{}, false, false},
		"inner":            {jsontype.Of[keptInner](), &keptInner{}, true, true},
		"kept":             {jsontype.Of[keptCommon](), &keptCommon{}, false, false},
	} {
		if got := tt.typ.Withholds(tt.in, false); got != tt.applied {
			t.Errorf("%s, applied: %t", name, got)
		}
		if got := tt.typ.Withholds(tt.in, true); got != tt.failed {
			t.Errorf("%s, failed: %t", name, got)
		}
	}
	const data = `{"value":"a","open":true}`
	if got := string(jsontype.Of[keptNarrow]().Redact([]byte(data), &keptNarrow{Open: true}, true)); got != data {
		t.Errorf("not confidential: %s", got)
	}
}

// TestRedactCostsNothing checks that Redact does not allocate if nothing is withheld.
func TestRedactCostsNothing(t *testing.T) {
	typ, data, in := jsontype.Of[keptNarrow](), []byte(`{"open":true,"value":"a"}`), &keptNarrow{Open: true}
	if n := testing.AllocsPerRun(100, func() { typ.Redact(data, in, true) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// keptHeaders is data with HTTP headers.
type keptHeaders struct {
	To      string            `json:"to" keep:"always" doc:"Who reads it."`
	Headers map[string]string `json:"headers,omitzero" keep:"headers" doc:"What goes with it."`
}

// TestRedactHeaders checks that exactly the values of headers with credentials are withheld, however the name is written, and that a
// second Redact changes nothing.
func TestRedactHeaders(t *testing.T) {
	t.Parallel()
	form := jsontype.Of[keptHeaders]()
	for data, want := range map[string]string{
		`{"to": "a"}`: `{"to": "a"}`,
		`{"to":"a", "headers": {"Accept": "x", "Idempotency-Key":"y"}}`:        `{"to":"a", "headers": {"Accept": "x", "Idempotency-Key":"y"}}`,
		`{"to": "a", "headers":{"AUTHORIZATION":"hidden", "accept":"\u0061"}}`: `{"to":"a","headers":{"AUTHORIZATION":"[redacted]","accept":"\u0061"}}`,
		`{"headers":{"c\u006fokie":"hidden"},"to":"a"}`:                        `{"headers":{"cookie":"[redacted]"},"to":"a"}`,
		`{"to":"a","headers":{"X-Api-Key":"hidden","x-auth-token":"hidden"}}`:  `{"to":"a","headers":{"X-Api-Key":"[redacted]","x-auth-token":"[redacted]"}}`,
		`{"to":"a","headers":{"authorization":"pwenc:v1:eyJhIjoxfQ"}}`:         `{"to":"a","headers":{"authorization":"pwenc:v1:eyJhIjoxfQ"}}`,
		`{"to":"a","headers":{"authorization":"pwenc:v1:hidden"}}`:             `{"to":"a","headers":{"authorization":"[redacted]"}}`,
		`{"to":"a","headers":{"CB-ACCESS-PASSPHRASE":"hidden"}}`:               `{"to":"a","headers":{"CB-ACCESS-PASSPHRASE":"[redacted]"}}`,
		`{"to":"a","headers":{"Cf-Access-Jwt-Assertion":"hidden"}}`:            `{"to":"a","headers":{"Cf-Access-Jwt-Assertion":"[redacted]"}}`,
		`{"to":"a","headers":{"X-Auth-Key":"hidden","x_api_key":"hidden"}}`:    `{"to":"a","headers":{"X-Auth-Key":"[redacted]","x_api_key":"[redacted]"}}`,
		`{"to":"a","headers":{"X-Session-ID":"hidden","Some-Key":"hidden"}}`:   `{"to":"a","headers":{"X-Session-ID":"[redacted]","Some-Key":"[redacted]"}}`,
		`{"to":"authorization","headers":{}}`:                                  `{"to":"authorization","headers":{}}`,
	} {
		if _, err := form.Decode([]byte(data)); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for once := []byte(data); ; {
			got := form.Redact(once, nil, true)
			if string(got) != want {
				t.Errorf("%s: got %s, want %s", once, got, want)
			}
			if string(once) == want {
				break
			}
			once = []byte(want)
		}
	}
}

// keptURL is data with a URL.
type keptURL struct {
	To  string `json:"to" keep:"always" doc:"Who reads it."`
	URL string `json:"url" keep:"url" doc:"Where it is."`
}

// TestRedactURL checks that exactly the user and password of a URL are withheld, however the URL is written.
func TestRedactURL(t *testing.T) {
	t.Parallel()
	form := jsontype.Of[keptURL]()
	for url, want := range map[string]string{
		`"https://me:hidden@a.example/p?q#f"`:   `"https://[redacted]@a.example/p?q#f"`,
		`"https://hidden@a.example"`:            `"https://[redacted]@a.example"`,
		`"https:\/\/me:hid\u0064en\u0040a/"`:    `"https://[redacted]@a/"`,
		`"https://me:hid@den@a.example/"`:       `"https://[redacted]@a.example/"`,
		`"https://me:hidden\\@a.example/"`:      `"https://[redacted]@a.example/"`,
		`"//me:hidden@a"`:                       `"//[redacted]@a"`,
		`"https://me:hid/den@a.example/p"`:      `"https://[redacted]@a.example/p"`,
		`"https://me:hid?den@a.example/p"`:      `"https://[redacted]@a.example/p"`,
		`"https:/me:hidden@a.example/p"`:        `"https:/[redacted]@a.example/p"`,
		`"https:////me:hidden@a.example/p"`:     `"https:////[redacted]@a.example/p"`,
		`"me:hidden@a.example/p"`:               `"me:[redacted]@a.example/p"`,
		`"HTTP://me:hidden@a.example"`:          `"HTTP://[redacted]@a.example"`,
		`"https://[::1]:80@hidden:x@a.example"`: `"https://[redacted]@a.example"`,
		`"https://[::1]:80/@me"`:                `"https://[::1]:80/@me"`,
		`"http://a.example:80/@me"`:             `"http://a.example:80/@me"`,
		`"https://a.example/@me?to=b@c#d@e"`:    `"https://a.example/@me?to=b@c#d@e"`,
		`"https://a.example?to=b@c"`:            `"https://a.example?to=b@c"`,
		`"os:///skills/@me"`:                    `"os:///skills/@me"`,
		`"./?to=ftp://u@h/p"`:                   `"./?to=ftp://u@h/p"`,
		`"skills//a@2/b"`:                       `"skills//a@2/b"`,
		`"./a@2"`:                               `"./a@2"`,
		`"https:\/\/a.example"`:                 `"https:\/\/a.example"`,
		`""`:                                    `""`,
	} {
		data, want := `{"to":"x@y","url":`+url+`}`, `{"to":"x@y","url":`+want+`}`
		if _, err := form.Decode([]byte(data)); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		once := form.Redact([]byte(data), nil, true)
		if twice := form.Redact(once, nil, true); string(once) != want || string(twice) != want {
			t.Errorf("%s: got %s, then %s, want %s", data, once, twice, want)
		}
	}
}
