package jsontype

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// ParseInteger parses a JSON value as an integer as JSON Schema defines it: 3, 3.0 and 3e0 are the same. It
// returns false if the value is not a number, has a fraction, or does not fit an int64.
func ParseInteger(raw []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	if !isNumber(raw) {
		return 0, false
	}
	const longest = 19 // digits of an int64
	d := ParseNumber(raw)
	if d.point < len(d.digits) || d.point > longest {
		return 0, false
	}
	whole := append(d.digits, bytes.Repeat([]byte{'0'}, d.point-len(d.digits))...)
	if d.negative {
		whole = slices.Insert(whole, 0, '-')
	}
	if len(whole) == 0 {
		return 0, true
	}
	n, err := strconv.ParseInt(string(whole), 10, 64)
	return n, err == nil
}

// finiteNumber parses a JSON value as a finite number.
func finiteNumber(raw []byte) (float64, bool) {
	if !isNumber(raw) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil && !math.IsInf(f, 0)
}

// isNumber reports whether a valid JSON value is a number.
func isNumber(raw []byte) bool {
	return raw[0] == '-' || (raw[0] >= '0' && raw[0] <= '9')
}

// Number is an exact JSON number: 0.digits × 10^point. The digits neither begin nor end with a zero, so that each
// number has one form; zero has no digits. Its size depends on the length of the text, not on the exponent:
// 1e1000000000 is not expanded.
type Number struct {
	negative bool
	digits   []byte
	point    int
}

// ParseNumber parses a valid JSON number.
func ParseNumber(raw []byte) Number {
	const far = 1 << 30 // larger than the number of digits in any line
	negative := raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	exponent := 0
	if e := bytes.IndexAny(raw, "eE"); e >= 0 {
		exponent, _ = strconv.Atoi(string(raw[e+1:])) // if it is out of range, Atoi returns the nearest int
		exponent = max(-far, min(exponent, far))
		raw = raw[:e]
	}
	whole, fraction, _ := bytes.Cut(raw, []byte{'.'})
	all := slices.Concat(whole, fraction)
	digits := bytes.TrimLeft(all, "0")
	if len(digits) == 0 {
		return Number{}
	}
	return Number{
		negative: negative,
		digits:   bytes.TrimRight(digits, "0"),
		point:    len(whole) - (len(all) - len(digits)) + exponent,
	}
}

// numberOf returns the number of the bound f in the JSON Schema.
func numberOf(f float64) Number { return ParseNumber(strconv.AppendFloat(nil, f, 'e', -1, 64)) }

// Digits returns the number of digits, without zeros at either end.
func (d Number) Digits() int { return len(d.digits) }

// Whole reports whether the number has no fraction.
func (d Number) Whole() bool { return d.point >= len(d.digits) }

// Append appends the number in its canonical form.
func (d Number) Append(dst []byte) []byte {
	if d.negative {
		dst = append(dst, '-')
	}
	return strconv.AppendInt(append(append(dst, d.digits...), 'e'), int64(d.point), 10)
}

// MultipleOf reports whether d is an integer multiple of other, which must not be zero.
func (d Number) MultipleOf(other Number) bool {
	zeros := d.point - len(d.digits) - (other.point - len(other.digits))
	if len(d.digits) == 0 {
		return true
	}
	if zeros < 0 {
		return false // the last digit is not zero
	}
	n, m := new(big.Int), new(big.Int)
	n.SetString(string(d.digits), 10)
	m.SetString(string(other.digits), 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(zeros)), m)
	return n.Mod(n.Mul(n, power), m).Sign() == 0
}

func (d Number) sign() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// Compare returns -1, 0 or 1 as d is less than, equal to or greater than other.
func (d Number) Compare(other Number) int {
	if d.sign() != other.sign() || d.sign() == 0 {
		return cmp.Compare(d.sign(), other.sign())
	}
	return d.sign() * cmp.Or(cmp.Compare(d.point, other.point), bytes.Compare(d.digits, other.digits))
}
