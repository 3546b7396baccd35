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

// control returns what a control sequence is.
func (r *reader) control(parameters string, final byte) (kind, rune) {
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
