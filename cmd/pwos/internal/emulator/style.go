package emulator

import (
	"fmt"
	"strconv"
	"strings"
)

// colour is 0 for the default one, palette+index, or direct+RGB.
type colour uint32

const (
	palette colour = 1 << 24
	direct  colour = 2 << 24
)

// style is how a cell looks.
type style struct {
	fg, bg, line colour
	looks        uint16 // bit n: SGR n is on, 1 to 9; bit 10: 53
	under        uint8  // kind of the underline
}

func (s style) background() style { return style{bg: s.bg} }

// sequence returns what sets the style, whatever was set before.
func (s style) sequence() string {
	text := "\x1b[0"
	for n := 1; n <= 9; n++ {
		if s.looks&(1<<n) != 0 {
			text += ";" + strconv.Itoa(n)
			if n == 4 && s.under > 1 {
				text += ":" + strconv.Itoa(int(s.under))
			}
		}
	}
	if s.looks&(1<<10) != 0 {
		text += ";53"
	}
	return text + s.fg.parameter(30) + s.bg.parameter(40) + s.line.parameter(50) + "m"
}

// parameter returns the parameters that set a colour; base is 30, 40, or 50 for that of an underline.
func (c colour) parameter(base int) string {
	n := int(c & (palette - 1))
	switch {
	case c == 0:
		return ""
	case c >= direct:
		return fmt.Sprintf(";%d;2;%d;%d;%d", base+8, n>>16, n>>8&255, n&255)
	case n < 8 && base < 50:
		return fmt.Sprintf(";%d", base+n)
	case n < 16 && base < 50:
		return fmt.Sprintf(";%d", base+60+n-8)
	}
	return fmt.Sprintf(";%d;5;%d", base+8, n)
}

// set carries SGR out.
func (s *style) set(text string) {
	parts := strings.Split(text, ";")
	for i := 0; i < len(parts); i++ {
		sub := strings.Split(parts[i], ":")
		n, _ := strconv.Atoi(sub[0]) // an empty one is 0
		switch {
		case n == 0:
			*s = style{}
		case n == 4 && len(sub) > 1:
			kind, _ := strconv.Atoi(sub[1])
			if s.under = uint8(kind & 7); s.under == 0 {
				s.looks &^= 1 << 4
			} else {
				s.looks |= 1 << 4
			}
		case n >= 1 && n <= 9:
			s.looks |= 1 << n
			if n == 4 {
				s.under = 1
			}
		case n == 21:
			s.looks, s.under = s.looks|1<<4, 2
		case n == 22:
			s.looks &^= 1<<1 | 1<<2
		case n >= 23 && n <= 29:
			s.looks &^= 1 << (n - 20)
		case n == 53:
			s.looks |= 1 << 10
		case n == 55:
			s.looks &^= 1 << 10
		case n >= 30 && n <= 37:
			s.fg = palette + colour(n-30)
		case n >= 40 && n <= 47:
			s.bg = palette + colour(n-40)
		case n >= 90 && n <= 97:
			s.fg = palette + colour(n-90+8)
		case n >= 100 && n <= 107:
			s.bg = palette + colour(n-100+8)
		case n == 39:
			s.fg = 0
		case n == 49:
			s.bg = 0
		case n == 59:
			s.line = 0
		case n == 38, n == 48, n == 58:
			at := map[int]*colour{38: &s.fg, 48: &s.bg, 58: &s.line}[n]
			if len(sub) > 1 {
				at.take(sub[1:])
			} else {
				i += at.take(parts[i+1:])
			}
		}
	}
}

// take sets a colour from 5;N, or 2;R;G;B, which a form with colons has with an empty part more. It returns how many parts it took.
func (c *colour) take(parts []string) int {
	number := func(i int) colour {
		if i >= len(parts) {
			return 0
		}
		n, _ := strconv.Atoi(parts[i])
		return colour(n & 255)
	}
	switch {
	case len(parts) >= 2 && parts[0] == "5":
		*c = palette + number(1)
		return 2
	case len(parts) >= 5 && parts[0] == "2" && parts[1] == "":
		*c = direct + number(2)<<16 + number(3)<<8 + number(4)
		return 5
	case len(parts) >= 4 && parts[0] == "2":
		*c = direct + number(1)<<16 + number(2)<<8 + number(3)
		return 4
	}
	return len(parts)
}
