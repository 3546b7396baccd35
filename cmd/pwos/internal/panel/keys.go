package panel

import (
	"unicode/utf8"
)

// kind is what a token of the input is.
type kind uint8

const (
	part      kind = iota // of a sequence that a later read completes
	key                   // char is what it types, or one of the constants below
	chord                 // the attention chord
	pasted                // a part of what is pasted, or a mark around it
	status                // the terminal's answer to ESC [ 5 n
	place                 // its answer to ESC [ 6 n
	report                // another answer of the terminal
	ignored               // of the mouse, a key that was held, or one that is no character
	unpressed             // a key that was released, or the mouse that was moved: no key
)

// Keys that type no character.
const (
	keyEscape rune = -1 - iota
	keyEnter
	keyErase
	keyUp
	keyDown
	keyPageUp
	keyPageDown
)

// token is a part of the input.
type token struct {
	kind kind
	char rune
	raw  []byte // what of it this read has
	full []byte // all of it
}

// reader cuts what a terminal sends into tokens.
type reader struct {
	chord byte // as a control character

	state   inputState
	full    []byte // sequence that is not complete
	inPaste bool
	mouse   int // bytes of an old report of the mouse that are to come
}

type inputState uint8

const (
	plain inputState = iota
	afterEscape
	afterSS3
	inControl
	inString
	inStringEscape
	inCharacter
	inMouse
)

// Bounds of a sequence; a longer one is none.
const (
	longestControl = 64
	longestString  = 64 << 10
)

const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

// read cuts a read into tokens. Their raw parts together are the read.
func (r *reader) read(p []byte) (tokens []token) {
	from := 0
	if r.state == afterEscape && len(p) > 0 && p[0] != '[' && p[0] != 'O' { // it was the Escape key
		r.state, r.full = plain, nil
	}
	emit := func(to int, k kind, char rune) {
		tokens = append(tokens, token{kind: k, char: char, raw: p[from:to], full: r.full})
		from, r.state, r.full = to, plain, nil
	}
	for i := 0; i < len(p); i++ {
		b := p[i]
		if r.brokenBy(b) {
			if i > from {
				emit(i, ignored, 0)
			}
			r.state, r.full = plain, nil
		}
		if (r.state == afterEscape || r.state == inCharacter) && (b == 0x1b || r.state == inCharacter && b&0xc0 != 0x80) {
			char := keyEscape
			if r.state == inCharacter {
				char = utf8.RuneError
			}
			emit(i, key, char)
		}
		r.full = append(r.full, b)
		if k, char, done := r.next(b); done {
			emit(i+1, r.kindOf(k), char)
		}
	}
	if from < len(p) {
		full := r.full
		if r.state == afterEscape && len(full) == 1 && !r.inPaste { // nothing follows: most likely the Escape key
			tokens = append(tokens, token{kind: key, char: keyEscape, raw: p[from:], full: full})
			return tokens
		}
		tokens = append(tokens, token{kind: part, raw: p[from:], full: full})
	}
	return tokens
}

// brokenBy reports whether a control character ends a sequence that is not complete.
func (r *reader) brokenBy(b byte) bool {
	switch r.state {
	case afterEscape:
		return b < ' ' && b != 0x1b
	case afterSS3, inControl:
		return b < ' '
	case inString:
		return b < ' ' && b != 0x1b && b != 0x07
	}
	return false
}

// kindOf makes all within a paste pasted.
func (r *reader) kindOf(k kind) kind {
	switch text := string(r.full); {
	case text == pasteBegins:
		r.inPaste = true
		return pasted
	case text == pasteEnds:
		r.inPaste = false
		return pasted
	case r.inPaste:
		return pasted
	}
	return k
}

// next handles a byte, and reports whether it completes a token.
func (r *reader) next(b byte) (kind, rune, bool) {
	switch r.state {
	case plain:
		return r.first(b)
	case afterEscape:
		switch b {
		case '[':
			r.state = inControl
		case 'O':
			r.state = afterSS3
		case ']', 'P', '_', '^', 'X':
			r.state = inString
		default: // with Alt
			return ignored, 0, true
		}
	case afterSS3:
		char := arrow(b)
		if char == 0 {
			return ignored, 0, true
		}
		return key, char, true
	case inControl:
		if b >= '@' && b <= '~' && len(r.full) > 2 {
			if b == 'M' && len(r.full) == 3 {
				r.state, r.mouse = inMouse, 3
				return 0, 0, false
			}
			k, char := r.control(string(r.full[2:len(r.full)-1]), b)
			return k, char, true
		}
		return ignored, 0, len(r.full) > longestControl
	case inMouse:
		r.mouse--
		return ignored, 0, r.mouse == 0
	case inString:
		if b == 0x1b {
			r.state = inStringEscape
		}
		return report, 0, b == 0x07 || len(r.full) > longestString
	case inStringEscape:
		return report, 0, true
	case inCharacter:
		if utf8.FullRune(r.full) {
			char, _ := utf8.DecodeRune(r.full)
			return key, char, true
		}
	}
	return 0, 0, false
}

// first handles the first byte of a token.
func (r *reader) first(b byte) (kind, rune, bool) {
	switch {
	case b == 0x1b:
		r.state = afterEscape
		return 0, 0, false
	case b == r.chord:
		return chord, 0, true
	case b == '\r' || b == '\n':
		return key, keyEnter, true
	case b == 0x7f || b == '\b':
		return key, keyErase, true
	case b < ' ':
		return ignored, 0, true
	case b < 0x80:
		return key, rune(b), true
	case utf8.RuneStart(b) && !utf8.FullRune([]byte{b}):
		r.state = inCharacter
		return 0, 0, false
	}
	return key, utf8.RuneError, true
}
