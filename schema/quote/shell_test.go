package quote_test

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/quote"
)

// hostile are words with all that a shell interprets. They execute ran, or write into a file, where they are not quoted.
var hostile = []string{
	"Bash$(ran>PWNED)", "`ran`", "a;ran", "a|ran", "a&ran&", "a\\", "a\\'", `\\`, `\'$(ran)\'`, `a\'; ran; '`, "'; ran; '", `"; ran; "`, `'"$(ran)"'`, "it's", "''", `\"`,
	"!!", "a!pwos", "!?pwos?", "=ran", "%self", "%1", "~", "~root", "a=~", "*", "?", "[a-z]", "{a,b}", "a{ran,}", "#ran", "a #b", "-x", "--", "$HOME", "${HOME}", "$'\\n'",
	"(ran)", "<(ran)", ">(ran)", ">PWNED", "<ran", "2>PWNED", "^a^b", "a b", " a ", "é'$(ran)", "", "@(a|ran)", "a:b,c+d@e%f/g_h=i.j-k", `\u001b`, `'\u001b\'`,
	"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
}

// invisible are words with characters that must not be displayed.
var invisible = []string{
	"a\nran", "a\rran\n", "\n", "a\tb", "\x1b[2J$(ran)", "a\u202eb'; ran; '", "\U000e0041\u200b", "a\x7f\u0085`ran`", "\x80'$(ran)", "e\u3164\"\\!!", "a'\n'; ran #",
}

// TestShells: each shell reads a quoted word as that word, and executes nothing of it; also of a command that is copied
// with the quotes around it. A word with what must not be displayed is the same word only in shells that have a form for it.
func TestShells(t *testing.T) {
	t.Parallel()
	words := slices.Concat(hostile, drawn(testkit.Rounds(5, 20, 500)))
	for _, shell := range testkit.Shells() {
		t.Run(fmt.Sprint(shell), func(t *testing.T) {
			t.Parallel()
			desk := testkit.NewDesk(t, "ran")
			for _, word := range words {
				if got := desk.Paste(t, shell, quote.Line("pwos", "cap", word)); len(got) != 1 || !slices.Equal(got[0], []string{"pwos", "cap", word}) {
					t.Errorf("%q is quoted as %s, and executes %q", word, quote.Word(word), got)
				}
			}
			exact := strings.Contains(shell[0], "bash") || strings.Contains(shell[0], "zsh")
			for _, word := range invisible {
				got := desk.Paste(t, shell, quote.Line("pwos", "cap", word))
				harmless := len(got) == 0 || len(got) == 1 && len(got[0]) == 3 && slices.Equal(got[0][:2], []string{"pwos", "cap"})
				if !harmless || exact && !slices.Equal(got[0], []string{"pwos", "cap", word}) {
					t.Errorf("%q is quoted as %s, and executes %q", word, quote.Word(word), got)
				}
			}
			for _, word := range slices.Concat(hostile, invisible) {
				if got := desk.Paste(t, shell, quote.Command("pwos", word)); len(got) > 1 || len(got) == 1 && (got[0][0] != "pwos" || len(got[0]) != 2) {
					t.Errorf("%q, with its quotes, is %s, and executes %q", word, quote.Command("pwos", word), got)
				}
			}
		})
	}
}

// drawn returns words of what shells interpret, at random.
func drawn(n int) (words []string) {
	parts := []string{"'", `\`, `"`, "$", "(", ")", "`", ";", "ran", " ", "!", "a", "{", ",", "}", "=", "~", "#", ">", "é", "u0041"}
	for range n {
		var b strings.Builder
		for range 1 + rand.IntN(12) {
			b.WriteString(parts[rand.IntN(len(parts))])
		}
		words = append(words, b.String())
	}
	return words
}

// TestWord: a word that no shell interprets stays as it is; nothing that is hidden is written.
func TestWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"": "''", "plain-1.2": "plain-1.2", "Tool:claude/mcp/fs/read": "Tool:claude/mcp/fs/read", "Memory.*": "'Memory.*'", "two words": "'two words'",
		"it's": `'it'\''s'`, "$HOME": "'$HOME'", "a=b,c": "a=b,c", "=ls": "'=ls'", `a\'b`: `'a'\\\''b'`, "a\nb'$": `$'a\012b\047\044'`, "\U000e0041": `$'\363\240\201\201'`,
	} {
		if got := quote.Word(word); got != want {
			t.Errorf("%q is quoted as %s, want %s", word, got, want)
		}
	}
	for _, word := range append(hostile, invisible...) {
		if got := quote.Word(word); strings.ContainsFunc(got, quote.Hidden) {
			t.Errorf("%q is quoted as %q", word, got)
		}
	}
}

// TestCommand: a command stands in double quotes, unless a shell would interpret it there.
func TestCommand(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"Memory.Set": `"pwos Memory.Set"`, "Memory.*": `"pwos 'Memory.*'"`, "$(a)": "pwos '$(a)'", "\n$": `"pwos $'\012\044'"`,
	} {
		if got := quote.Command("pwos", word); got != want {
			t.Errorf("the command of %q is %s, want %s", word, got, want)
		}
	}
}

// TestList: a flag reads the values that were given, whatever they contain.
func TestList(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{{"Memory.*", "Call:a/b"}, {"Call:a/b,Crypto.Open", `Call:"x"`, `,","`, "a\nb"}, hostile} {
		got := testkit.Value(csv.NewReader(strings.NewReader(quote.List(values))).Read())(t) // as pflag does
		if !slices.Equal(got, values) {
			t.Errorf("%q is read as %q", values, got)
		}
	}
}
