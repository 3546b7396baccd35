package schema

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
)

// parseInteger reads a JSON value as an integer the way JSON Schema counts one: 3, 3.0 and 3e0 are the same. It
// returns false for what is no number, has a fraction, or does not fit an int64.
func parseInteger(raw []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	if !isNumber(raw) || bytes.IndexAny(raw, ".eE") < 0 || !tameExponent(raw) {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(string(raw))
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// parseNumber reads a JSON value as a finite number.
func parseNumber(raw []byte) (float64, bool) {
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

// tameExponent keeps a hostile number from being expanded: 1e1000000000 is twelve characters and a gigabyte of digits.
func tameExponent(raw []byte) bool {
	const most = 400
	mantissa, exponent, found := bytes.Cut(bytes.ToLower(raw), []byte("e"))
	if !found || len(mantissa) > most {
		return len(mantissa) <= most
	}
	exp, err := strconv.Atoi(string(bytes.TrimPrefix(exponent, []byte("+"))))
	return err == nil && -most <= exp && exp <= most
}
