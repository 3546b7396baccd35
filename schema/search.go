package schema

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// Words is a normalised text for a search: its words in lower case, with one space before and after each. A word consists of letters,
// digits and marks; in scripts without spaces, each character is a word.
type Words []byte

// AppendText appends the words of a text.
func (w Words) AppendText(text string) Words {
	inside := false
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9'), r >= utf8.RuneSelf && inWord(r):
		case r >= 'A' && r <= 'Z':
			r += 'a' - 'A'
		default:
			if inside {
				w, inside = append(w, ' '), false
			}
			continue
		}
		alone := r >= utf8.RuneSelf && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
		if alone && inside {
			w, inside = append(w, ' '), false
		}
		if !inside && len(w) == 0 {
			w = append(w, ' ')
		}
		w, inside = utf8.AppendRune(w, unicode.ToLower(r)), true
		if alone {
			w, inside = append(w, ' '), false
		}
	}
	if inside {
		w = append(w, ' ')
	}
	return w
}

// inWord reports whether a word may have the character.
func inWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co) && r != utf8.RuneError
}

// AppendData appends the words of the strings and numbers of a JSON value, in order, until there are most bytes. It skips
// the names of members.
func (w Words) AppendData(value []byte, most int) Words {
	if len(w) >= most || len(value) == 0 {
		return w
	}
	switch value[0] {
	case '{':
		jsontype.Members(value, func(_, value []byte) bool {
			w = w.AppendData(value, most)
			return len(w) < most
		})
	case '[':
		jsontype.Elements(value, func(value []byte) bool {
			w = w.AppendData(value, most)
			return len(w) < most
		})
	case '"':
		text := string(jsontype.Unquote(value))
		w = w.AppendText(text[:min(len(text), most-len(w))])
	case 't', 'f', 'n':
	default:
		w = w.AppendText(string(value))
	}
	return w
}

// Phrase is a sequence of words.
type Phrase struct {
	Words  string // with a space between them
	Prefix bool   // the last one is the beginning of a word
}

// find returns the index of the first occurrence of the phrase in w from an index on; -1: none.
func (p *Phrase) find(w Words, from int) int {
	text := " " + p.Words + " "
	if p.Prefix {
		text = text[:len(text)-1]
	}
	at := bytes.Index(w[from:], []byte(text))
	if at < 0 {
		return -1
	}
	return from + at
}

// In returns the number of occurrences of the phrase in w.
func (p *Phrase) In(w Words) (times int) {
	for at := p.find(w, 0); at >= 0; at = p.find(w, at+1) {
		times++
	}
	return times
}

// Bounds of a search.
const (
	maxPhrases = 16
	minPrefix  = 2
)

// ParseSearch parses the query of Event.Search. Each word and each quoted text is a phrase.
func ParseSearch(query string) (phrases []Phrase, err error) {
	for rest := strings.TrimSpace(query); rest != ""; rest = strings.TrimSpace(rest) {
		var text string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			var closed bool
			if text, rest, closed = strings.Cut(quoted, `"`); !closed {
				return nil, jsontype.Invalid("query", `has a quotation mark that nothing closes: close it, as in "two words", or leave it out`)
			}
		} else {
			end := strings.IndexFunc(rest, func(r rune) bool { return r == '"' || r == '*' || unicode.IsSpace(r) })
			if end < 0 {
				end = len(rest)
			}
			text, rest = rest[:end], rest[end:]
		}
		p := Phrase{Words: strings.TrimSpace(string(Words(nil).AppendText(text)))}
		if after, ok := strings.CutPrefix(rest, "*"); ok {
			p.Prefix, rest = true, after
			if next, _ := utf8.DecodeRuneInString(rest); rest != "" && !unicode.IsSpace(next) {
				return nil, jsontype.Invalid("query", "has a * within a word: it stands at the end, for all that begin so, as in note*")
			}
			if last := p.Words[strings.LastIndexByte(p.Words, ' ')+1:]; utf8.RuneCountInString(last) < minPrefix {
				return nil, jsontype.Invalid("query", "has a * behind fewer than %d letters: write more of the word before it, as in note*", minPrefix)
			}
		}
		if p.Words != "" && !slices.Contains(phrases, p) {
			phrases = append(phrases, p)
		}
	}
	switch {
	case len(phrases) == 0:
		return nil, jsontype.Invalid("query", "has no letter and no digit: say which words to look for")
	case len(phrases) > maxPhrases:
		return nil, jsontype.Invalid("query", "has %d words and phrases, and may have %d: leave some out", len(phrases), maxPhrases)
	}
	return phrases, nil
}
