package conformance_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/promptware-os/pwos/internal/testkit"
)

// form is a form of words.txt, with the reason of its entry.
type form struct {
	words  []string // in lower case
	isCall bool     // the last word is the name of a function
	reason string
}

// wording is an entry of words.txt.
type wording struct {
	forms    []form
	not, but string
}

func wordings(t *testing.T) []wording {
	t.Helper()
	var all []wording
	for line := range strings.Lines(testkit.ReadFile(t, "words.txt")) {
		line = strings.TrimSuffix(line, "\n")
		example, isExample := strings.CutPrefix(line, "\t")
		list, rest, _ := strings.Cut(example, ": ")
		switch {
		case line == "" || line[0] == '#':
		case rest == "":
			t.Fatalf("words.txt: %q must have a colon, and text after it", line)
		case isExample && len(all) > 0 && list == "not":
			all[len(all)-1].not = rest
		case isExample && len(all) > 0 && list == "but":
			all[len(all)-1].but = rest
		case isExample:
			t.Fatalf("words.txt: %q must begin with \"not: \" or \"but: \", below a form", line)
		default:
			var w wording
			for text := range strings.SplitSeq(list, ", ") {
				name, isCall := strings.CutSuffix(text, "(")
				w.forms = append(w.forms, form{words: strings.Fields(name), isCall: isCall, reason: rest})
			}
			all = append(all, w)
		}
	}
	return all
}

// misuse is a place at which a text has a form.
type misuse struct {
	form form
	line int
}

// misused finds the forms in a text. Between two words of a form there may be only white space and comment marks.
func misused(text string, forms map[string][]form) []misuse {
	var found []misuse
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
	// next returns the first word of s in lower case, the text before it, and the rest.
	next := func(s string) (gap, word, rest string) {
		begin := strings.IndexFunc(s, isWord)
		if begin < 0 {
			return s, "", ""
		}
		end := strings.IndexFunc(s[begin:], func(r rune) bool { return !isWord(r) })
		if end < 0 {
			end = len(s) - begin
		}
		return s[:begin], strings.ToLower(s[begin : begin+end]), s[begin+end:]
	}
	for rest := text; rest != ""; {
		var word string
		_, word, rest = next(rest)
		for _, f := range forms[word] {
			behind := rest
			same := !slices.ContainsFunc(f.words[1:], func(want string) bool {
				var gap, got string
				gap, got, behind = next(behind)
				return got != want || gap == "" || strings.Trim(gap, " \t\n/#") != ""
			})
			if same && (!f.isCall || strings.HasPrefix(behind, "(")) {
				found = append(found, misuse{f, 1 + strings.Count(text[:len(text)-len(rest)], "\n")})
			}
		}
	}
	return found
}

func byFirstWord(all []wording) map[string][]form {
	forms := make(map[string][]form)
	for _, w := range all {
		for _, f := range w.forms {
			forms[f.words[0]] = append(forms[f.words[0]], f)
		}
	}
	return forms
}

// TestForms: each form is found in its example, and none in the plain wording.
func TestForms(t *testing.T) {
	t.Parallel()
	all := wordings(t)
	forms := byFirstWord(all)
	for _, w := range all {
		first := w.forms[0]
		if !slices.ContainsFunc(misused(w.not, forms), func(m misuse) bool { return slices.Equal(m.form.words, first.words) }) {
			t.Errorf("%q is not found in %q", first.words, w.not)
		}
		if found := misused(w.but, forms); w.but == "" || found != nil {
			t.Errorf("the wording to use for %q is %q, which has %v", first.words, w.but, found)
		}
	}
	for text, want := range map[string]int{
		"// it is under\n\t// way":    1, // across the end of a comment's line
		"Under\nway":                  1,
		"under, way; under. Way":      0,
		"underway, wonder way":        0,
		"mail is to be. It had come":  0,
		"func lets(h string)":         1,
		"lets go":                     0,
		"lend, and lends":             2,
		"what remains to be had, but": 1,
	} {
		if found := misused(text, forms); len(found) != want {
			t.Errorf("%q: found %v, want %d", text, found, want)
		}
	}
}

// TestWords: no text of the tree has a form of words.txt.
func TestWords(t *testing.T) {
	t.Parallel()
	forms := byFirstWord(wordings(t))
	read := regexp.MustCompile(`\.(go|md|txtar|js|ts|py|sh|tmpl|toml|service)$`)
	root := os.DirFS("../..")
	files := 0
	testkit.Must(t, fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "vendor" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !read.MatchString(name) || name == path.Join("test/conformance", "words_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		files++
		for _, m := range misused(string(text), forms) {
			t.Errorf("%s:%d: %q: %s (words.txt)", name, m.line, strings.Join(m.form.words, " "), m.form.reason)
		}
		return nil
	}))
	if files < 1000 {
		t.Errorf("read only %d files", files)
	}
}
