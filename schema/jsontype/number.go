package jsontype

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// ParseInteger reads a JSON value as an integer the way JSON Schema counts one: 3, 3.0 and 3e0 are the same. It
// returns false for what is no number, has a fraction, or does not fit an int64.
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

// finiteNumber reads a JSON value as a finite number.
func finiteNumber(raw []byte) (float64, bool) {
	if !isNumber(raw) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil && !math.IsInf(f, 0)
}

// isNumber tells a JSON number from the other kinds of valid value.
func isNumber(raw []byte) bool {
	return raw[0] == '-' || (raw[0] >= '0' && raw[0] <= '9')
}

// Number is a JSON number, exactly: 0.digits × 10^point. The digits neither begin nor end with a zero, so that each
// number has one form; zero has no digits. Its cost depends on the length of the text, not on the exponent:
// 1e1000000000 is never written out.
type Number struct {
	negative bool
	digits   []byte
	point    int
}

// ParseNumber reads a JSON number.
func ParseNumber(raw []byte) Number {
	const far = 1 << 30 // no line has enough digits to bring an exponent back from here
	negative := raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	exponent := 0
	if e := bytes.IndexAny(raw, "eE"); e >= 0 {
		exponent, _ = strconv.Atoi(string(raw[e+1:])) // out of range, it is the farthest int
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

// numberOf returns the number that the JSON Schema shows for the bound f.
func numberOf(f float64) Number { return ParseNumber(strconv.AppendFloat(nil, f, 'e', -1, 64)) }

// Digits is how many digits it has, without zeros at either end.
func (d Number) Digits() int { return len(d.digits) }

// Whole reports whether it has no fraction.
func (d Number) Whole() bool { return d.point >= len(d.digits) }

// Append appends the number in the one form that it has.
func (d Number) Append(dst []byte) []byte {
	if d.negative {
		dst = append(dst, '-')
	}
	return strconv.AppendInt(append(append(dst, d.digits...), 'e'), int64(d.point), 10)
}

// MultipleOf reports whether it is a whole number of times other, which is not zero.
func (d Number) MultipleOf(other Number) bool {
	zeros := d.point - len(d.digits) - (other.point - len(other.digits))
	if len(d.digits) == 0 {
		return true
	}
	if zeros < 0 {
		return false // it does not end with a zero
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
