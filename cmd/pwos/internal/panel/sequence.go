package panel

import (
	"strconv"
	"strings"
)

// arrow returns the key of a final byte, or 0.
func arrow(b byte) rune {
	switch b {
	case 'A':
		return keyUp
	case 'B':
		return keyDown
	}
	return 0
}

// unpressed reports whether a sequence tells that a key was released, or the mouse moved. Older reports of the mouse are not taken for that:
// where they end is not sure, and what follows may be of them.
func (r *reader) unpressed(parameters string, final byte) bool {
	const moved = 32
	if rest, ok := strings.CutPrefix(parameters, "<"); ok {
		buttons, _, _ := strings.Cut(rest, ";")
		n, err := strconv.Atoi(buttons)
		return final == 'M' && err == nil && n >= 0 && n&moved != 0
	}
	list := strings.Split(parameters, ";")
	return strings.IndexByte("u~ABCDEFHPQS", final) >= 0 && len(list) > 1 && strings.HasSuffix(list[1], ":3")
}

// control returns what a control sequence is.
func (r *reader) control(parameters string, final byte) (kind, rune) {
	if r.unpressed(parameters, final) {
		return unpressed, 0
	}
	switch final {
	case 'n':
		if parameters == "0" || parameters == "3" {
			return status, 0
		}
		return report, 0
	case 'R':
		if row, _, two := strings.Cut(parameters, ";"); two && row != "" && strings.Trim(row, "0123456789") == "" {
			return place, 0
		}
		return report, 0
	case 'c', 't', 'y', 'I', 'O':
		return report, 0
	case 'A', 'B':
		if parameters == "" {
			return key, arrow(final)
		}
	case '~':
		switch parameters {
		case "5":
			return key, keyPageUp
		case "6":
			return key, keyPageDown
		}
		if list := strings.Split(parameters, ";"); len(list) == 3 && list[0] == "27" { // modifyOtherKeys
			return r.pressed(list[2], list[1])
		}
	case 'u':
		if strings.HasPrefix(parameters, "?") {
			return report, 0
		}
		code, modifiers, _ := strings.Cut(parameters, ";")
		code, _, _ = strings.Cut(code, ":")
		modifiers, _, _ = strings.Cut(modifiers, ";")
		return r.pressed(code, modifiers)
	}
	return ignored, 0
}

// Modifiers of keys, as terminals report them.
const (
	shift   = 1
	ctrl    = 4
	capsOn  = 64
	numOn   = 128
	noValue = -1
)

// pressed returns the key of a code with modifiers, as terminals report it that tell more than characters.
func (r *reader) pressed(code, modifiers string) (kind, rune) {
	number := func(text string, otherwise int) int {
		if text == "" {
			return otherwise
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return noValue
		}
		return n
	}
	modifiers, event, _ := strings.Cut(modifiers, ":")
	n, held := number(code, noValue), number(modifiers, 1)
	if n < 0 || held < 1 || number(event, 1) != 1 { // repeated or released
		return ignored, 0
	}
	held = (held - 1) &^ (capsOn | numOn)
	switch {
	case held == ctrl && n >= '@' && n < 0x7f && byte(n)&0x1f == r.chord:
		return chord, 0
	case held != 0 && held != shift:
		return ignored, 0
	case n == 27:
		return key, keyEscape
	case n == 13:
		return key, keyEnter
	case n == 127:
		return key, keyErase
	case n >= ' ' && n < 0xe000 && held == 0:
		return key, rune(n)
	}
	return ignored, 0
}
