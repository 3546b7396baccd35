package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestWords checks the words of texts.
func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		" -;- ":                    "",
		"Memory.Set":               " memory set ",
		"https://a.test/x?y=1":     " https a test x y 1 ",
		"ÄRGER naïve":              " ärger naïve ",
		"内核 log":                   " 内 核 log ",
		"a\xffb\x00c":              " a b c ",
		"\u202eevil\u001b[31m \"q": " evil 31m q ",
	} {
		if got := string(schema.Words(nil).AppendText(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	const data = `{"name":"A\u0062c","list":[1.5,true,null,{"deep":"Z"}],"long":"xxxxxxxxxxxxxxxxxxxxxx"}`
	if got := string(schema.Words(nil).AppendData([]byte(data), 16)); got != " abc 1 5 z xxxxx " {
		t.Errorf("data: %q", got)
	}
}

// TestParseSearch checks the phrases of queries, and the errors of invalid ones.
func TestParseSearch(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"quick fox":                              "[quick; fox]",
		` "Brown Fox"  x`:                        "[brown fox; x]",
		`mem* "slow be"*`:                        "[mem*; slow be*]",
		`a"b"c`:                                  "[a; b; c]",
		`x x "" X`:                               "[x]",
		`Memory.Set NOT (OR) ^`:                  "[memory set; not; or]",
		`who:p7 {said} -a`:                       "[who p7; said; a]",
		`"open`:                                  "a quotation mark that nothing closes",
		`b*`:                                     "write more of the word",
		`*`:                                      "write more of the word",
		`a*b`:                                    "within a word",
		`...`:                                    "no letter and no digit",
		strings.Repeat("a1 ", 3) + manyWords(17): "leave some out",
	} {
		phrases, err := schema.ParseSearch(query)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", query, err, want)
			}
			continue
		}
		var texts []string
		for _, p := range phrases {
			text := p.Words
			if p.Prefix {
				text += "*"
			}
			texts = append(texts, text)
		}
		got := fmt.Sprint("[", strings.Join(texts, "; "), "]")
		if got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "word%d ", i)
	}
	return b.String()
}

// FuzzParseSearch checks that phrases have only words, and that a text contains its own phrases.
func FuzzParseSearch(f *testing.F) {
	f.Add(`"a b"* c`)
	f.Add("内核 \"x")
	f.Fuzz(func(t *testing.T, query string) {
		phrases, err := schema.ParseSearch(query)
		if err != nil {
			return
		}
		for _, p := range phrases {
			again := schema.Words(nil).AppendText(p.Words)
			if p.Words == "" || strings.Contains(p.Words, `"`) || p.In(again) == 0 {
				t.Fatalf("%q: phrase %q, words %q", query, p.Words, again)
			}
		}
	})
}
