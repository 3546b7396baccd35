package quote_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema/quote"
)

// TestText: an escape ends where it seems to, and is not what somebody has written as one.
func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain \\ text\\":      "plain \\ text\\",
		"\x1b[2J":              `\u001b[2J`,
		"\U000e0041":           `\U000e0041`,
		"\u0e00\u200e41":       "\u0e00" + `\u200e41`,
		`\u001b`:               `\\u001b`,
		`\\u001B`:              `\\\\u001B`,
		"\\\x1b":               `\\\u001b`,
		`C:\Users\u00`:         `C:\Users\u00`,
		`\U000E0041, \U000e00`: `\\U000E0041, \U000e00`,
		"a\u202e\u2028\u0085é": `a\u202e\u2028\u0085é`,
	} {
		if got := quote.Text(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

// TestTextIsUnambiguous: no two texts are shown as the same, and nothing that is shown is a control character.
func TestTextIsUnambiguous(t *testing.T) {
	t.Parallel()
	text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{`\`, "u", "U", "0", "001b", "000e0041", "\x1b", "\U000e0041", "\u200b", "x"}), 0, 8),
		func(parts []string) string { return strings.Join(parts, "") })
	rapid.Check(t, func(t *rapid.T) {
		a := text.Draw(t, "text")
		shown := quote.Text(a)
		if strings.ContainsFunc(shown, quote.Control) || read(shown) != a {
			t.Fatalf("%q is shown as %s, which reads as %q", a, shown, read(shown))
		}
	})
}

// read returns the text that is shown as this.
func read(shown string) string {
	var b strings.Builder
	for len(shown) > 0 {
		rest := strings.TrimLeft(shown, `\`)
		slashes := len(shown) - len(rest)
		digits := 0
		if rest != "" {
			digits = map[byte]int{'u': 4, 'U': 8}[rest[0]]
		}
		var r rune
		for i := range digits {
			at := -1
			if i+1 < len(rest) {
				at = strings.IndexByte("0123456789abcdef", rest[i+1]|0x20)
			}
			if at < 0 {
				digits = 0
				break
			}
			r = r<<4 | rune(at)
		}
		if digits > 0 {
			b.WriteString(strings.Repeat(`\`, slashes/2))
			if slashes%2 == 1 {
				b.WriteRune(r)
				shown = rest[1+digits:]
				continue
			}
		} else {
			b.WriteString(strings.Repeat(`\`, slashes))
		}
		if shown = rest; shown != "" && slashes == 0 {
			first := []rune(shown)[0]
			b.WriteRune(first)
			shown = shown[len(string(first)):]
		} else if shown != "" {
			b.WriteByte(shown[0])
			shown = shown[1:]
		}
	}
	return b.String()
}

// TestJSON: JSON without control characters is the same value.
func TestJSON(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"\u001b"`:               `"\u001b"`,
		"\"\U000e0041\u200b1\"":  `"\udb40\udc41\u200b1"`,
		"{\"a\":\"\\\\\u0085\"}": `{"a":"\\\u0085"}`,
	} {
		got := quote.JSON(raw)
		if got != want {
			t.Errorf("%s is shown as %s, want %s", raw, got, want)
		}
		var before, after any
		if json.Unmarshal([]byte(raw), &before) != nil || json.Unmarshal([]byte(got), &after) != nil {
			t.Errorf("%s or %s is no JSON", raw, got)
		}
	}
}
