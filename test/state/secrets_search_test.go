package state_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// window is how many consecutive bytes of a secret are a leak.
const window = 12

// canary returns a unique secret, so that a leak shows its origin. It has bytes that encodings write differently: a quote,
// a backslash, a line end, a letter beyond ASCII, and special characters of HTML.
func canary(chance *rand.ChaCha8) string {
	raw := make([]byte, 24)
	_, _ = chance.Read(raw)
	text := base64.RawURLEncoding.EncodeToString(raw)
	var b strings.Builder
	for i, special := range []string{"\"", "\\", "\n", "/", "<", "é"} { // separated, so that each part is unique
		b.WriteString(text[5*i:5*i+5] + special)
	}
	return b.String()
}

// forms returns the forms in which a text may be written: as it is, as JSON, in hex, in base64 of either alphabet, with any
// offset.
func forms(text string) []string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	escaped := string(quoted[1 : len(quoted)-1])
	var all strings.Builder
	for _, r := range text {
		fmt.Fprintf(&all, `\u%04x`, r)
	}
	plain := strings.NewReplacer(`\u003c`, "<", `/`, `\/`).Replace(escaped)
	list := []string{
		text, escaped, strings.ReplaceAll(escaped, `\u003c`, "<"), plain, all.String(), fmt.Sprintf("%q", text), fmt.Sprintf("%+q", text),
		hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text))),
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			// Bits that are shared with other bytes are omitted.
			code := encoding.EncodeToString(append(make([]byte, shift), text...))
			list = append(list, code[(8*shift+5)/6:len(code)-1])
		}
	}
	return list
}

// search finds secrets in bytes. Of a secret in its own form, and in JSON, it finds each part of window bytes; of the other
// forms each part of window+stride-1.
type search struct{ parts map[[window]byte]struct{} }

// stride is the distance of the searched parts of the longer forms.
const stride = 6

func newSearch() *search { return &search{parts: make(map[[window]byte]struct{})} }

// add adds a secret to the search.
func (s *search) add(secret string) {
	for n, form := range forms(secret) {
		step := stride
		if n < 2 {
			step = 1
		}
		for i := 0; i+window <= len(form); i += step {
			s.parts[[window]byte([]byte(form[i:i+window]))] = struct{}{}
		}
	}
}

// in returns the parts of secrets in a text, each with its surroundings.
func (s *search) in(text []byte) (found []string) {
	for i := 0; i+window <= len(text); i++ {
		if _, ok := s.parts[[window]byte(text[i:i+window])]; ok {
			found = append(found, fmt.Sprintf("%q in %q", text[i:i+window], text[max(0, i-200):min(len(text), i+100)]))
			i += window
		}
	}
	return found
}
